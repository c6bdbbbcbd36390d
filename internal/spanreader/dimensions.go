// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/conventions"
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

// Labels reads the attributes that distinguish the series of a request, and those of conventions.
type Labels struct{ dimensions, standard Dimensions }

// NewLabels returns Labels of dimensions, and of the attributes that conventions.Config.AttributesRead names.
func NewLabels(dimensions, standard []string) Labels {
	return Labels{NewDimensions(dimensions), NewDimensions(standard)}
}

// Request returns a request with room for the labels.
func (l *Labels) Request() series.Contribution {
	return series.Contribution{Dimensions: make([]string, len(l.dimensions.names)), Standard: make([]string, len(l.standard.names))}
}

// Read stores the attribute in the request, as Dimensions.Read does.
func (l *Labels) Read(into *series.Contribution, key string, v pcommon.Value) {
	l.dimensions.Read(into.Dimensions, key, v)
	l.standard.Read(into.Standard, key, v)
}

// Clean removes labels that are meaningless without others.
func (l *Labels) Clean(r *series.Contribution) { conventions.Clean(l.standard.names, r.Standard) }

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
