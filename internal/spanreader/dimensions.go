// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Dimensions are the attributes that distinguish series.
type Dimensions struct {
	names []string
	// lengths has a bit for the length of each name, modulo 64. Most attributes are
	// excluded by it without a comparison.
	lengths uint64
}

// NewDimensions returns the dimensions of these names.
func NewDimensions(names []string) Dimensions {
	d := Dimensions{names: names}
	for _, name := range names {
		d.lengths |= 1 << (len(name) % 64)
	}
	return d
}

// Read stores the attribute in values if it is a dimension with a value that is not
// empty.
func (d *Dimensions) Read(values []string, key string, v pcommon.Value) {
	if d.lengths>>(len(key)%64)&1 == 0 {
		return
	}
	for i, name := range d.names {
		if key == name {
			label := labelValue(v)
			if names.IsCategory(name) {
				label = names.Category(label)
			}
			if label != "" {
				values[i] = label
			}
			return
		}
	}
}

// labelValue returns the value as a clean label value. It is empty for lists, maps and
// bytes.
func labelValue(v pcommon.Value) string { return series.CleanLabel(scalar(v)) }

func scalar(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBool:
		return v.AsString()
	default:
		return ""
	}
}
