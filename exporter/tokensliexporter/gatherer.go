// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// gatherer is a prometheus.Gatherer that writes series directly into Prometheus'
// messages. A prometheus.Registry would cost several times as much, for it allocates an
// object per metric, and would require the same labels on all metrics of a family,
// while labels without a value are absent here.
type gatherer struct {
	keeper    *keeper.Keeper
	catalogue *catalogue
	labels    *labels
}

func newGatherer(k *keeper.Keeper, config *Config) (*gatherer, error) {
	catalogue, err := newCatalogue(config.Shared.Selection())
	if err != nil {
		return nil, err
	}
	labels, err := newLabels(config)
	return &gatherer{keeper: k, catalogue: catalogue, labels: labels}, err
}

// Gather returns the current metrics in the order of their names.
func (g *gatherer) Gather() ([]*dto.MetricFamily, error) {
	s := &scrape{gatherer: g, metrics: make([][]*dto.Metric, len(g.catalogue.families))}
	now := time.Now()
	g.keeper.Engine.Collect(now, s.series)
	g.keeper.Tracker.Visit(now, s.budgets)
	g.keeper.Gauges(now, s.producerGauge)
	var families []*dto.MetricFamily
	for i, f := range g.catalogue.families {
		if f.on && len(s.metrics[i]) > 0 {
			families = append(families, &dto.MetricFamily{
				Name: &f.name, Help: &f.help, Type: &f.kind, Unit: f.unit, Metric: s.metrics[i],
			})
		}
	}
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(*a.Name, *b.Name) })
	return families, nil
}

func (s *scrape) series(snapshot *series.Snapshot) {
	labels := s.labels.of(&snapshot.Identity)
	s.counters(snapshot, labels)
	for i := range snapshot.SLOs {
		s.verdicts(&snapshot.SLOs[i], labels)
	}
	for i := range snapshot.Outcomes {
		if outcome := &snapshot.Outcomes[i]; !outcome.Empty() {
			s.outcome(outcome, s.with(labels, s.labels.outcome[i]))
		}
	}
}

func (s *scrape) counters(snapshot *series.Snapshot, labels []*dto.LabelPair) {
	start := timestamppb.New(snapshot.Start)
	for i, c := range series.Counters {
		if n, ok := snapshot.Count(c.Count); ok {
			s.counter(s.catalogue.counter[i], s.with(labels, s.labels.counter[i]...), n, start)
		}
	}
}

func (s *scrape) outcome(outcome *series.OutcomeSnapshot, labels []*dto.LabelPair) {
	start := timestamppb.New(outcome.Start)
	if outcome.Requests > 0 {
		s.counter(s.catalogue.requests, labels, float64(outcome.Requests), start)
	}
	for i := range outcome.Distributions {
		d := &outcome.Distributions[i]
		if d.Sketch.Count() == 0 && len(d.Quantiles) == 0 {
			continue
		}
		labels := s.with(labels, s.labels.phase[i])
		if d.Sketch.Count() > 0 {
			s.add(s.catalogue.histogram[i], labels).Histogram = s.histogram(d, s.keeper.Engine.Bounds(numbers.ID(i)), start)
		}
		for _, q := range d.Quantiles {
			s.gauge(s.catalogue.percentile[i], s.with(labels, s.labels.percentile[q.Quantile], s.labels.window[q.Window]), q.Value)
		}
	}
}
