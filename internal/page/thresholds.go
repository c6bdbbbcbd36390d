// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"maps"
	"math"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// maxThresholds limits the SLOs whose threshold is known.
const maxThresholds = 128

// Thresholds holds the indicator and threshold of SLOs. It learns them from requests that breached
// the SLO. The page needs them for SLOs that another Collector defines. The zero value is empty.
type Thresholds struct {
	mu    sync.Mutex
	bySLO map[string]threshold
}

type threshold struct {
	indicator string
	value     float64
}

// Knows reports whether the threshold of an SLO is known, or will never be.
func (t *Thresholds) Knows(slo string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.bySLO[slo]
	return ok || len(t.bySLO) >= maxThresholds
}

// Set sets the indicator and threshold of an SLO: empty and NaN if they are unknown.
func (t *Thresholds) Set(slo, indicator string, value float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bySLO == nil {
		t.bySLO = map[string]threshold{}
	}
	if len(t.bySLO) < maxThresholds {
		t.bySLO[strings.Clone(slo)] = threshold{strings.Clone(indicator), value}
	}
}

// Learn reads the thresholds of the SLOs that a request breached, of its span. An SLO without one, such as on the outcome,
// is learned, too.
func (t *Thresholds) Learn(r *series.Contribution, span ptrace.Span) {
	for name, verdict := range r.Verdicts.All {
		if verdict == slo.Bad && name != names.SLOAll && !t.Knows(name) {
			t.learn(span)
			return
		}
	}
}

func (t *Thresholds) learn(span ptrace.Span) {
	indicators, thresholds := list(span, names.SLOBreachedIndicator), list(span, names.SLOBreachedThreshold)
	for i, breached := range list(span, names.SLOBreached).All() {
		name := names.CleanLabel(breached.Str())
		if name == "" || t.Knows(name) {
			continue
		}
		indicator, threshold := "", math.NaN()
		if i < indicators.Len() && i < thresholds.Len() {
			indicator = names.CleanLabel(indicators.At(i).Str())
			if n, ok := attributes.Number(thresholds.At(i)); ok && n >= 0 {
				threshold = n
			}
		}
		t.Set(name, indicator, threshold)
	}
}

func list(span ptrace.Span, name string) pcommon.Slice {
	if v, ok := span.Attributes().Get(name); ok && v.Type() == pcommon.ValueTypeSlice {
		return v.Slice()
	}
	return pcommon.NewSlice()
}

func (t *Thresholds) of(slo string) (indicator *string, value number) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.bySLO[slo]; of.indicator != "" {
		return &of.indicator, number(of.value)
	}
	return nil, missing
}

// definitions are the SLOs that components of this process define, by their names in the series.
type definitions map[string]slo.Definition

// definitions returns the SLOs that components of this process define. It leaves out an SLO that two
// components define differently, because either may have judged a request.
func (p *Page) definitions() definitions {
	all, ambiguous := definitions{}, map[string]bool{}
	for _, component := range p.SLOs.All() {
		for _, d := range component {
			d.Name = names.CleanLabel(d.Name)
			if other, ok := all[d.Name]; ok && other != d {
				ambiguous[d.Name] = true
			}
			all[d.Name] = d
		}
	}
	maps.DeleteFunc(all, func(name string, _ slo.Definition) bool { return ambiguous[name] })
	return all
}

// threshold returns the indicator and threshold of an SLO: as it is defined, or else as a breach reported it.
func (p *Page) threshold(defined definitions, name string) (indicator *string, value number) {
	d, ok := defined[name]
	switch {
	case !ok:
		return p.Thresholds.of(name)
	case d.Threshold == 0:
		return &d.Indicator, missing
	default:
		return &d.Indicator, number(d.Threshold)
	}
}
