// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "bytes"

// logResource is the resource of a ResourceLogs, encoded at the first use.
type logResource struct {
	logs    []byte // the ResourceLogs
	encoded bool
	list    []byte
	err     error
}

// attributes returns the resource as a canonical KeyValueList. Batches may keep it.
func (r *logResource) attributes() ([]byte, error) {
	if !r.encoded {
		r.encoded = true
		r.list, r.err = r.encode()
	}
	return r.list, r.err
}

func (r *logResource) encode() (list []byte, err error) {
	logs := r.logs
	f := fieldsOf(logs)
	for f.next() {
		if !f.is(resourceLogsResource, bytesType) {
			continue
		}
		if list, err = appendResource(list, f.bytes, appendCanonical); err != nil {
			return nil, err
		}
	}
	return bytes.Clone(list), checkCount(list) // Clone trims spare capacity
}
