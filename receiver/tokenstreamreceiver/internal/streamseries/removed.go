// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamseries

// removedAttributes counts attributes that senders must not set, those of each resource once.
type removedAttributes struct {
	total     int
	resources map[string]bool
}

func (r *removedAttributes) reset() {
	r.total = 0
	clear(r.resources)
}

func (r *removedAttributes) add(id *streamIdentity, resource []byte) {
	r.total += id.removed
	if id.removedFromResource == 0 || r.resources[string(resource)] {
		return
	}
	if r.resources == nil {
		r.resources = map[string]bool{}
	}
	r.resources[string(resource)] = true
	r.total += id.removedFromResource
}
