// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// labels holds every label whose value the configuration determines. Messages share them.
type labels struct {
	dimensions []string // names only
	outcome    [len(series.OutcomeNames)]*dto.LabelPair
	phase      [numbers.Distributions]*dto.LabelPair  // nil if the metric has no such label
	counter    [len(series.Counters)][]*dto.LabelPair // those that the metric has
	percentile []*dto.LabelPair
	window     []*dto.LabelPair
	overflow   *dto.LabelPair
	verdict    [slo.Verdicts]*dto.LabelPair
	burnWindow [len(slo.BurnWindows)]*dto.LabelPair
}

func newLabels(config *Config) (*labels, error) {
	dimensions, err := dimensionLabels(config.Shared.Series.Dimensions)
	if err != nil {
		return nil, err
	}
	var namer otlptranslator.LabelNamer
	overflow, err := namer.Build(names.LabelOverflow)
	if err != nil {
		return nil, err
	}
	l := &labels{dimensions: dimensions, overflow: pair(overflow, "true")}
	for i, outcome := range series.OutcomeNames {
		l.outcome[i] = pair(names.LabelOutcome, outcome)
	}
	for _, id := range numbers.Histograms {
		l.phase[id] = pair(names.LabelPhase, id.Row().Phase)
	}
	for i, c := range series.Counters {
		l.counter[i] = appendPresent(nil, pair(names.LabelType, c.Type), pair(names.LabelIndicator, c.Indicator), pair(names.LabelReason, c.Reason))
	}
	for _, p := range config.Percentiles {
		l.percentile = append(l.percentile, pair(names.LabelPercentile, strconv.FormatFloat(p, 'f', -1, 64)))
	}
	for _, w := range config.Windows {
		l.window = append(l.window, pair(names.LabelWindow, model.Duration(w).String()))
	}
	for v := range slo.Verdicts {
		l.verdict[v] = pair(names.LabelVerdict, v.String())
	}
	for i, window := range slo.BurnWindowLabels {
		l.burnWindow[i] = pair(names.LabelWindow, window)
	}
	return l, nil
}

// pair returns a label, or nil if the value is empty.
func pair(name, value string) *dto.LabelPair {
	if value == "" {
		return nil
	}
	return &dto.LabelPair{Name: &name, Value: &value}
}

// of returns the labels of a series.
func (l *labels) of(s *series.Identity) []*dto.LabelPair {
	if s.Overflow {
		return []*dto.LabelPair{l.overflow}
	}
	all := make([]*dto.LabelPair, 0, len(l.dimensions)+1)
	for i, value := range s.Dimensions {
		all = appendPresent(all, pair(l.dimensions[i], value))
	}
	return sorted(appendPresent(all, pair(names.LabelVantage, s.Vantage)))
}

func appendPresent(all []*dto.LabelPair, more ...*dto.LabelPair) []*dto.LabelPair {
	for _, p := range more {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// sorted sorts labels by name, as Prometheus requires.
func sorted(all []*dto.LabelPair) []*dto.LabelPair {
	slices.SortFunc(all, func(a, b *dto.LabelPair) int { return strings.Compare(*a.Name, *b.Name) })
	return all
}
