// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package metricreader_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/metricreader"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// message returns a batch with one data point of each kind.
func message(temporality pmetric.AggregationTemporality, start, at time.Time, counts ...uint64) []byte {
	metrics := pmetric.NewMetrics()
	all := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	total := uint64(0)
	for _, n := range counts {
		total += n
	}
	for _, name := range []string{"tokenpulse.requests", "tokenpulse.stalls", "tokenpulse.slo.requests"} {
		m := all.AppendEmpty()
		m.SetName(name)
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(temporality)
		p := m.Sum().DataPoints().AppendEmpty()
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetIntValue(int64(total))
		p.Attributes().PutStr("outcome", "success")
		p.Attributes().PutStr("slo", "all")
		p.Attributes().PutStr("verdict", "bad")
	}
	m := all.AppendEmpty()
	m.SetName("tokenpulse.time_to_first_token")
	m.SetEmptyExponentialHistogram().SetAggregationTemporality(temporality)
	p := m.ExponentialHistogram().DataPoints().AppendEmpty()
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	p.SetTimestamp(pcommon.NewTimestampFromTime(at))
	p.SetScale(sketch.Scale)
	p.SetCount(total)
	p.SetSum(float64(total) * 1.01)
	p.Positive().BucketCounts().FromRaw(counts)
	p.Attributes().PutStr("outcome", "success")
	e := p.Exemplars().AppendEmpty()
	e.SetTraceID([16]byte{1})
	e.SetDoubleValue(1.01)
	m = all.AppendEmpty()
	m.SetName("tokenpulse.slo.burn_rate")
	g := m.SetEmptyGauge().DataPoints().AppendEmpty()
	g.SetDoubleValue(2)
	g.Attributes().PutStr("slo", "all")
	g.Attributes().PutStr("window", "5m")
	encoded, err := new(pmetric.ProtoMarshaler).MarshalMetrics(metrics)
	if err != nil {
		panic(err)
	}
	return encoded
}

// FuzzRead reads two messages into an engine. Whatever they hold, the engine has finite
// numbers and sketches that merge.
func FuzzRead(f *testing.F) {
	begin := time.Unix(1_700_000_000, 0)
	const cumulative, delta = pmetric.AggregationTemporalityCumulative, pmetric.AggregationTemporalityDelta
	f.Add(message(cumulative, begin, begin.Add(15e9), 1, 2), message(cumulative, begin, begin.Add(30e9), 1, 3))
	f.Add(message(cumulative, begin, begin.Add(15e9), 7), message(cumulative, begin, begin.Add(30e9), 2))
	f.Add(message(delta, begin, begin.Add(15e9), 2), message(delta, begin, begin.Add(30e9), 3))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		const limit = 4
		r := metricreader.New(metricreader.Options{Dimensions: dimensions, MaxStreams: limit}, begin)
		e := series.NewEngine(series.Options{
			Config: series.Config{Dimensions: dimensions, MaxSeries: 2}, Windows: []time.Duration{time.Minute}, Quantiles: []float64{0.5},
		})
		now := time.Now() // the engine begins before it
		for _, encoded := range [][]byte{first, second} {
			metrics, err := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(encoded)
			if err != nil {
				continue
			}
			points := int64(metrics.DataPointCount())
			tally := r.Read(metrics, now, e.Increase)
			for _, n := range tally.Ignored {
				points -= n
			}
			require.Equal(t, points, tally.Points)
		}
		require.LessOrEqual(t, r.Held(), limit)
		finite := func(v float64) { require.True(t, v >= 0 && !math.IsInf(v, 0)) }
		e.Collect(now, func(s *series.Snapshot) {
			for _, c := range series.Counters {
				n, _ := s.Count(c.Count)
				finite(n)
			}
			for i := range s.Outcomes {
				if s.Outcomes[i].Empty() {
					continue
				}
				for q := range s.Outcomes[i].Distributions {
					d := &s.Outcomes[i].Distributions[q]
					finite(d.Sketch.Sum())
					require.NoError(t, new(sketch.Sketch).MergeBinary(d.Sketch.AppendBinary(nil)))
					for _, quantile := range d.Quantiles {
						finite(quantile.Value)
					}
				}
			}
		})
		r.Gauges(now, func(g *slo.Gauge) { require.False(t, math.IsNaN(g.Value) || math.IsInf(g.Value, 0)) })
	})
}
