// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// New returns the report of what a pipeline consumed. by names the dimensions of its series. The caller adds the files and
// the SLOs.
func New(p *pipeline.Pipeline, by []string) *Report {
	r := &Report{Version: Version, Begin: p.Begin.UTC(), End: p.End.UTC(), By: by, SLOs: []SLO{}, Groups: []Group{}, Input: Input{
		Requests: p.Tally.Requests, Traces: p.Tally.Traces, Duplicates: p.Tally.Duplicates, Aggregated: p.Tally.Aggregated,
		Ignored: p.Tally.Ignored, Overflow: p.Tally.Overflow, Forgotten: p.Forgotten(), Notes: []string{},
	}}
	for _, n := range p.Tally.Rejected {
		r.Input.Rejected += n
	}
	p.Engine.Collect(time.Now(), func(s *series.Snapshot) { r.Groups = append(r.Groups, group(s, by)) })
	return r
}

func group(s *series.Snapshot, by []string) Group {
	g := Group{
		Labels: map[string]string{}, Vantage: s.Vantage, Overflow: s.Overflow,
		Outcomes: map[string]Outcome{}, Failures: map[string]float64{}, Tokens: map[string]float64{}, Totals: map[string]float64{},
		Unmeasured: map[string]map[string]float64{}, SLOs: map[string]Verdicts{},
	}
	for i, value := range s.Dimensions {
		if value != "" {
			g.Labels[by[i]] = value
		}
	}
	for i := range series.Counters {
		if n, ok := s.Count(series.Counters[i].Count); ok && n > 0 {
			g.count(&series.Counters[i], n)
		}
	}
	for i := range s.SLOs {
		n := &s.SLOs[i].Requests
		g.SLOs[s.SLOs[i].Name] = Verdicts{Good: n[slo.Good], Bad: n[slo.Bad], NotEligible: n[slo.NotEligible]}
	}
	for i := range s.Outcomes {
		if !s.Outcomes[i].Empty() {
			g.Outcomes[series.OutcomeNames[i]] = outcome(&s.Outcomes[i])
		}
	}
	return g
}

func (g *Group) count(c *series.Counter, n float64) {
	switch {
	case c.Indicator != "":
		if g.Unmeasured[c.Indicator] == nil {
			g.Unmeasured[c.Indicator] = map[string]float64{}
		}
		g.Unmeasured[c.Indicator][c.Reason] = n
	case c.Cause != "":
		g.Failures[c.Cause] = n
	case c.Type != "":
		g.Tokens[c.Type] = n
	default:
		g.Totals[strings.TrimPrefix(c.Name, names.Prefix)] = n
	}
}

func outcome(o *series.OutcomeSnapshot) Outcome {
	all := Outcome{Requests: o.Requests, Indicators: map[string]Histogram{}}
	for _, id := range numbers.Histograms {
		if s := &o.Distributions[id].Sketch; s.Count() > 0 {
			values := &sketch.Sketch{}
			values.Merge(s) // the snapshot reuses its own
			all.Indicators[id.APIName()] = Histogram{values}
		}
	}
	return all
}
