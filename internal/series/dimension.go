// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"encoding"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Dimension is an attribute that distinguishes series: by its value or, with bands, by the band that its
// number lies in.
type Dimension struct {
	// Attribute is looked up on the span, then on its resource.
	Attribute string `mapstructure:"attribute"`
	// Bands are the bounds between the bands of a number, as NewBands takes them, at most 10. Empty means
	// that each value has series of its own.
	Bands []float64 `mapstructure:"bands" use:"a number, such as 1000"`
	// Label names the bands on metrics. The default is the name of the attribute with `_` for `.`.
	Label string `mapstructure:"label"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ encoding.TextUnmarshaler = (*Dimension)(nil)

// UnmarshalText reads a dimension without bands: the name of its attribute.
func (d *Dimension) UnmarshalText(attribute []byte) error {
	*d = Dimension{Attribute: string(attribute)}
	return nil
}

// Name returns the name of the dimension on metrics and in filters.
func (d *Dimension) Name() string {
	switch {
	case len(d.Bands) == 0:
		return d.Attribute
	case d.Label != "":
		return d.Label
	default:
		return strings.ReplaceAll(d.Attribute, ".", "_")
	}
}

// missing returns the value on requests without the attribute.
func (d *Dimension) missing() string {
	if len(d.Bands) > 0 {
		return UnknownBand
	}
	return ""
}

// Dimensions are the dimensions of a configuration, in its order.
type Dimensions []Dimension

// DimensionsOf returns dimensions without bands.
func DimensionsOf(attributes ...string) (all Dimensions) {
	for _, attribute := range attributes {
		all = append(all, Dimension{Attribute: attribute})
	}
	return all
}

// Names returns the names of the dimensions.
func (d Dimensions) Names() []string { return d.each((*Dimension).Name) }

// Attributes returns the attributes that the dimensions are read from.
func (d Dimensions) Attributes() []string {
	return d.each(func(d *Dimension) string { return d.Attribute })
}

// Identities returns a text for each dimension. It differs between dimensions that give requests
// different values, so that stored values of others are not read.
func (d Dimensions) Identities() []string {
	return d.each(func(d *Dimension) string {
		if len(d.Bands) == 0 {
			return d.Attribute
		}
		return fmt.Sprint(d.Attribute, " ", d.Bands)
	})
}

func (d Dimensions) each(text func(*Dimension) string) (all []string) {
	for i := range d {
		all = append(all, text(&d[i]))
	}
	return all
}

// maxDimensions limits the labels of a series.
const maxDimensions = 32

// ourLabels are the labels that metrics have besides the dimensions. Prometheus reserves
// `le` for histograms and `quantile` for summaries.
var ourLabels = []string{
	names.LabelVantage, names.LabelOutcome, names.LabelPhase, names.LabelPosition, names.LabelType,
	names.LabelPercentile, names.LabelWindow, names.LabelSLO, names.LabelVerdict,
	names.LabelIndicator, names.LabelReason, names.LabelCause, names.LabelSilent,
	names.LabelOverflow, "le", "quantile",
}

// problems returns an error for each invalid dimension.
func (d Dimensions) problems() (errs settings.Problems) {
	errs.Unless(len(d) <= maxDimensions, "`dimensions` has %d entries; the maximum is %d", len(d), maxDimensions)
	taken := map[string]*Dimension{} // by label; nil for ours
	for _, own := range ourLabels {
		taken[normalized(own)] = nil
	}
	for i := range d {
		dimension := &d[i]
		label := normalized(dimension.Name())
		switch other, ok := taken[label]; {
		case normalized(dimension.Attribute) == "" || label == "":
			errs = append(errs, fmt.Errorf("`dimensions` entry %d is %q; enter the name of an attribute, such as %s", i+1, dimension.Attribute, names.GenAIRequestModel))
		case ok && other == nil:
			errs = append(errs, fmt.Errorf("`dimensions` has %q, but tokenpulse sets the label %q itself; %s", dimension.Name(), own(label), dimension.remedy("remove it")))
		case ok:
			errs = append(errs, fmt.Errorf("`dimensions` has both %q and %q, which become the same label; %s", other.Name(), dimension.Name(), dimension.remedy("remove one")))
		default:
			taken[label] = dimension
		}
		errs = append(errs, dimension.bandProblems(i)...)
	}
	return errs
}

// own returns the label of tokenpulse that a normalized one stands for.
func own(label string) string {
	return ourLabels[slices.IndexFunc(ourLabels, func(own string) bool { return normalized(own) == label })]
}

// remedy says what to do about a label that is taken.
func (d *Dimension) remedy(withoutBands string) string {
	if len(d.Bands) > 0 {
		return "set another `label` for the bands"
	}
	return withoutBands
}

// maxBounds limits the bands of a dimension.
const maxBounds = 10

// bandProblems returns an error for each invalid setting of the bands of an entry.
func (d *Dimension) bandProblems(entry int) (errs settings.Problems) {
	path := fmt.Sprintf("`dimensions::%d::bands`", entry)
	errs.Unless(len(d.Bands) > 0 || d.Label == "",
		"%s is missing, and only bands have a `label`; list bounds, such as [1000, 8000], or write only the name of the attribute", path)
	errs.Unless(len(d.Bands) <= maxBounds, "%s has %d bounds; the maximum is %d", path, len(d.Bands), maxBounds)
	for i, bound := range d.Bands {
		errs.Unless(bound > 0 && bound <= largestBound && bound >= smallestBound,
			"%s has %v; use numbers from %s to %s", path, bound, decimal(smallestBound), decimal(largestBound))
		errs.Unless(i == 0 || bound > d.Bands[i-1], "%s has %v after %v; list bounds in ascending order, without duplicates", path, bound, d.Bands[max(i-1, 0)])
	}
	return errs
}

// normalized reduces a name to ASCII letters, digits and single underscores. Names that
// are equal afterwards become the same label in Prometheus.
func normalized(name string) string {
	parts := strings.FieldsFunc(name, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c)
	})
	return strings.Join(parts, "_")
}
