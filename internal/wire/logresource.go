// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

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
	count, logs := 0, r.logs
	for outer := range fields(&logs) {
		if !outer.is(resourceLogsResource, protowire.BytesType) {
			continue
		}
		for f := range fields(&outer.bytes) {
			if !f.is(resourceAttributes, protowire.BytesType) {
				continue
			}
			count++
			if err := checkNumber(count); err != nil {
				return nil, err
			}
			key, value := readKeyValue(f.bytes)
			if list, err = appendAttribute(list, key, &value, 0); err != nil {
				return nil, err
			}
		}
	}
	return bytes.Clone(list), nil // trims spare capacity
}
