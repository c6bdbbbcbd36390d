// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Dimensions read the attributes that distinguish series: the dimensions and, behind them, the attributes of
// conventions.
type Dimensions struct {
	names    []string
	standard []string        // those of conventions among the names
	bands    []*series.Bands // of the dimensions, nil if none has bands
	// numbers are the dimensions with bands that SetBands sets.
	numbers []bandsOfNumber
}

// NewDimensions returns Dimensions that read the attributes of these dimensions, and those that
// conventions.Config.AttributesRead names.
func NewDimensions(dimensions series.Dimensions, standard ...string) Dimensions {
	d := Dimensions{names: append(dimensions.Attributes(), standard...), standard: standard}
	for i := range dimensions {
		bands := series.NewBands(dimensions[i].Bands)
		if bands == nil {
			continue
		}
		if d.bands == nil {
			d.bands = make([]*series.Bands, len(d.names))
		}
		d.bands[i] = bands
		if number, ok := BandedNumber(&dimensions[i]); ok {
			d.numbers = append(d.numbers, bandsOfNumber{i, number, bands})
		}
	}
	return d
}

// Values returns the values of a request without attributes.
func (d *Dimensions) Values() []string {
	values := make([]string, len(d.names))
	d.Clear(values)
	return values
}

// Request returns a request with these values. It does not copy them.
func (d *Dimensions) Request(values []string) series.Contribution {
	n := len(d.names) - len(d.standard)
	return series.Contribution{Dimensions: values[:n:n], Standard: values[n:]}
}

// Clean removes attributes that are meaningless without others.
func (d *Dimensions) Clean(r *series.Contribution) { conventions.Clean(d.standard, r.Standard) }

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
	return bands.Of(attributes.Number(v))
}

// labelValue returns the value as a clean label value. It is empty for lists, maps and
// bytes.
func labelValue(v pcommon.Value) string { return names.CleanLabel(scalar(v)) }

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
