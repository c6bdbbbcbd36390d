// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// Dimensions read the attributes that distinguish series.
type Dimensions struct {
	names []string
	bands []*series.Bands // nil if no dimension has bands
	// numbers are the dimensions with bands that SetBands sets.
	numbers []bandsOfNumber
	// lengths has a bit for the length of each name, modulo 64. Most attributes are
	// excluded by it without a comparison.
	lengths uint64
}

// NewDimensions returns Dimensions that read the attributes of these dimensions.
func NewDimensions(dimensions series.Dimensions) Dimensions {
	d := newDimensions(dimensions.Attributes())
	for i := range dimensions {
		bands := series.NewBands(dimensions[i].Bands)
		if bands == nil {
			continue
		}
		if d.bands == nil {
			d.bands = make([]*series.Bands, len(dimensions))
		}
		d.bands[i] = bands
		if number, ok := BandedNumber(&dimensions[i]); ok {
			d.numbers = append(d.numbers, bandsOfNumber{i, number, bands})
		}
	}
	return d
}

func newDimensions(names []string) Dimensions {
	d := Dimensions{names: names}
	for _, name := range names {
		d.lengths |= 1 << (len(name) % 64)
	}
	return d
}

// Clear sets the values to those of a request without attributes.
func (d *Dimensions) Clear(values []string) {
	clear(values)
	for i, bands := range d.bands {
		if bands != nil {
			values[i] = series.UnknownBand
		}
	}
}

// Read stores the attribute in values if it is a dimension with a value that is not
// empty. Of a dimension with bands, it stores the band.
func (d *Dimensions) Read(values []string, key string, v pcommon.Value) {
	if d.lengths>>(len(key)%64)&1 != 0 {
		d.read(values, key, v)
	}
}

func (d *Dimensions) read(values []string, key string, v pcommon.Value) {
	for i, name := range d.names {
		switch {
		case key != name:
		case d.bands != nil && d.bands[i] != nil:
			values[i] = bandOf(d.bands[i], v)
		default:
			label := labelValue(v)
			if names.IsCategory(name) {
				label = names.Category(label)
			}
			if label != "" {
				values[i] = label
			}
		}
	}
}

// bandOf returns the band that a number lies in. On metrics, the value already is the label of a band.
func bandOf(bands *series.Bands, v pcommon.Value) string {
	if _, ok := bands.Index(v.Str()); ok {
		return v.Str()
	}
	return bands.Of(source.Number(v))
}

// Labels reads the attributes that distinguish the series of a request, and those of conventions.
type Labels struct{ dimensions, standard Dimensions }

// NewLabels returns Labels of dimensions, and of the attributes that conventions.Config.AttributesRead names.
func NewLabels(dimensions Dimensions, standard []string) Labels {
	return Labels{dimensions, newDimensions(standard)}
}

// Request returns a request with room for the labels.
func (l *Labels) Request() series.Contribution {
	r := series.Contribution{Dimensions: make([]string, len(l.dimensions.names)), Standard: make([]string, len(l.standard.names))}
	l.Clear(&r)
	return r
}

// Clear sets the labels to those of a request without attributes.
func (l *Labels) Clear(r *series.Contribution) {
	l.dimensions.Clear(r.Dimensions)
	clear(r.Standard)
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
