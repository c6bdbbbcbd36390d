// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tokenpulse/tokenpulse/internal/metricreader"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// verdicts adds the verdict counters of one SLO. All verdicts appear with the first
// request: a counter that appears later would hide its first increase. The counter of bad
// requests links to the trace of the latest.
func (s *scrape) verdicts(snapshot *series.SLOSnapshot, labels []*dto.LabelPair) {
	labels = s.with(labels, pair(names.LabelSLO, snapshot.Name))
	start := timestamppb.New(snapshot.Start)
	for verdict, n := range snapshot.Requests {
		counter := s.counter(s.catalogue.sloRequests, s.with(labels, s.labels.verdict[verdict]), float64(n), start)
		if slo.Verdict(verdict) == slo.Bad && snapshot.Bad.Set() {
			counter.Exemplar = exemplar(&snapshot.Bad)
		}
	}
}

// budgets adds the gauges of one series' objectives. Idle series have none, like the
// series that expired with them.
func (s *scrape) budgets(b *slo.Budgets) {
	if b.Idle {
		return
	}
	identity := series.IdentityOf(b.Key)
	seriesLabels := s.labels.of(&identity)
	for i := range b.Each {
		budget := &b.Each[i]
		labels := s.with(seriesLabels, pair(names.LabelSLO, budget.SLO))
		s.gauge(s.catalogue.sloObjective, labels, budget.Objective.Objective)
		for w, counts := range budget.Recent.Burn {
			if rate, ok := counts.BurnRate(budget.Objective.Objective); ok {
				s.gauge(s.catalogue.sloBurnRate, s.with(labels, s.labels.burnWindow[w]), rate)
			}
		}
		if left, ok := budget.Recent.Budget.BudgetRemaining(budget.Objective.Objective); ok {
			s.gauge(s.catalogue.sloBudget, labels, left)
		}
	}
}

// producerGauge adds a gauge of the objectives of those that sent metrics.
func (s *scrape) producerGauge(g *metricreader.Gauge) {
	identity := series.IdentityOf(g.Key)
	labels := s.with(s.labels.of(&identity), pair(names.LabelSLO, g.SLO))
	switch g.Metric {
	case names.SLOObjective:
		s.gauge(s.catalogue.sloObjective, labels, g.Value)
	case names.SLOBurnRate:
		s.gauge(s.catalogue.sloBurnRate, s.with(labels, s.labels.burnWindow[g.Window]), g.Value)
	default:
		s.gauge(s.catalogue.sloBudget, labels, g.Value)
	}
}
