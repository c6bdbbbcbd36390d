// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// put puts attributes into a map, as the receiver does: without those that only tokenpulse writes, and without free text
// in categories.
func put(dst pcommon.Map, attributes stream.Attributes) {
	for key, v := range sorted(attributes) {
		if !strings.HasPrefix(key, names.Prefix) {
			set(dst.PutEmpty(key), v, names.IsCategory(key))
		}
	}
}

// sorted yields attributes in the order of their keys, so that equal files make equal spans.
func sorted(attributes stream.Attributes) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, key := range slices.Sorted(maps.Keys(attributes)) {
			if !yield(key, attributes[key]) {
				return
			}
		}
	}
}

// set sets an empty value. A text in a category must be one, and a list holds such texts.
func set(dst pcommon.Value, v any, category bool) {
	switch v := v.(type) {
	case string:
		if category {
			v = names.Category(v)
		}
		dst.SetStr(v)
	case bool:
		dst.SetBool(v)
	case int64:
		dst.SetInt(v)
	case float64:
		dst.SetDouble(v)
	case []any:
		list := dst.SetEmptySlice()
		for _, element := range v {
			set(list.AppendEmpty(), element, category)
		}
	case map[string]any:
		if category {
			dst.SetStr(names.Other)
			return
		}
		own := dst.SetEmptyMap()
		for key, element := range sorted(v) {
			set(own.PutEmpty(key), element, false)
		}
	}
}
