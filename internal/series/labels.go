// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Labels distinguish a series from the others.
type Labels struct {
	// Dimensions holds the values of the configured dimensions in their order, empty
	// where the series has none. The overflow series has no dimensions.
	Dimensions []string
	Vantage    string
	// Overflow marks the series of the requests beyond the limit.
	Overflow bool
}

// AppendKey appends the key of the series with the labels: each dimension's value and the
// vantage, each after its length. Requests with equal keys share a series.
func (l *Labels) AppendKey(key []byte) []byte {
	if l.Overflow {
		return append(key, overflowKey...)
	}
	for _, v := range l.Dimensions {
		key = protowire.AppendString(key, v)
	}
	return protowire.AppendString(key, l.Vantage)
}

// LabelsOf returns the labels that a key stands for.
func LabelsOf(key string) Labels {
	values, ok := valuesOf(key)
	if !ok || len(values) == 0 {
		return Labels{Overflow: true}
	}
	last := len(values) - 1
	return Labels{Dimensions: values[:last], Vantage: values[last]}
}

// IsKey reports whether key is one that AppendKey writes for so many dimensions, or the
// key of the overflow series. Other keys, as a damaged storage may hold them, could stand
// for the labels of another series, or for labels that no scrape can carry.
func IsKey(key string, dimensions int) bool {
	if key == overflowKey {
		return true
	}
	values, ok := valuesOf(key)
	if !ok || len(values) != dimensions+1 {
		return false
	}
	var written []byte
	for _, v := range values {
		if v != names.CleanLabel(v) {
			return false
		}
		written = protowire.AppendString(written, v)
	}
	return string(written) == key
}

// firstValue returns the first value of a key: that of the first dimension.
func firstValue(key []byte) []byte {
	first, _ := protowire.ConsumeBytes(key)
	return first
}

// valuesOf returns the values of a key. ok is false if the key is malformed.
func valuesOf(key string) (values []string, ok bool) {
	for rest := []byte(key); len(rest) > 0; {
		value, n := protowire.ConsumeString(rest)
		if n < 0 {
			return nil, false
		}
		values, rest = append(values, value), rest[n:]
	}
	return values, true
}
