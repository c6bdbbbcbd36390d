// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package metricreader_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/metricreader"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

var dimensions = series.DimensionsOf("service.name", "gen_ai.request.model")

// world has producers that publish requests to one reader, and an engine that has them all
// directly.
type world struct {
	t         testing.TB
	random    *rand.Rand
	clock     time.Time
	producers []*producer
	reader    *metricreader.Reader
	read      *series.Engine // what the reader made of the metrics
	direct    *series.Engine
	tally     metricreader.Tally
	recorded  map[[16]byte]bool // traces of the requests
}

// producer publishes over a network that fails.
type producer struct {
	*publish.Publisher
	w        *world
	config   publish.Config
	resource string // empty for none
	offset   time.Duration
	fails    bool
	received pmetric.Metrics // last
}

func newEngine() *series.Engine {
	return series.NewEngine(series.Options{Config: series.Config{Dimensions: dimensions, MaxSeries: 1000}, Metrics: everyMetric()})
}

func everyMetric() series.Selection {
	all := series.Selection{}
	for _, name := range series.MetricNames() {
		all[name] = true
	}
	return all
}

func newWorld(t testing.TB, seed uint64, temporality publish.Temporality) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), clock: time.Now(), read: newEngine(), direct: newEngine(), recorded: map[[16]byte]bool{},
	}
	w.reader = metricreader.New(metricreader.Options{Dimensions: dimensions, MaxStreams: 1_000_000}, w.clock)
	for i := range 3 {
		p := &producer{w: w, config: publish.NewDefaultConfig(), offset: time.Duration(i+1) * 17 * time.Nanosecond}
		if i > 0 {
			p.resource = fmt.Sprint("collector-", i)
		}
		if i == 2 {
			p.resource = "collector-1" // only start times distinguish them
		}
		p.config.Temporality = temporality
		p.config.Shared.Series.Dimensions = dimensions
		p.config.Shared.Metrics = nil
		w.producers = append(w.producers, p)
		p.restart()
	}
	return w
}

// restart begins with new series, as a new process does.
func (p *producer) restart() {
	var err error
	p.Publisher, err = publish.New(publish.Settings{
		Config: &p.config, Telemetry: componenttest.NewNopTelemetrySettings(), Component: component.MustNewID("token_sli"),
		Kind: component.KindConnector, Scope: "scope", Next: must(consumer.NewMetrics(p.send)), Refused: noop.Int64Counter{},
		Now: func() time.Time { return p.w.clock.Add(p.offset) },
	})
	if err != nil {
		panic(err)
	}
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

var errNetwork = errors.New("network failed")

// send delivers metrics, mostly. Metrics may arrive although their sender gets an error.
func (p *producer) send(_ context.Context, metrics pmetric.Metrics) error {
	if p.resource != "" {
		metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", p.resource)
	}
	var refused error
	if p.fails {
		refused = errNetwork
		if p.w.random.IntN(2) == 0 {
			return refused
		}
	}
	p.received = metrics
	if p.w.t == nil { // a benchmark reads what was received
		return nil
	}
	p.w.deliver(metrics)
	if p.w.random.IntN(8) == 0 {
		p.w.deliver(metrics)
	}
	return refused
}

func (w *world) deliver(metrics pmetric.Metrics) {
	before := metrics.DataPointCount()
	tally := w.reader.Read(metrics, w.clock, func(i *series.Increment) series.Recorded { return w.read.Increase(i) })
	total := tally.Points
	for reason, n := range tally.Ignored {
		total += n
		w.tally.Ignored[reason] += n
	}
	require.EqualValues(w.t, before, total, "each data point is read or ignored")
}

// flush flushes once, without a failure.
func (p *producer) flush() {
	p.fails = false
	p.Keeper.Round(context.Background())
}

// request adds a request to a producer and to the direct engine.
func (w *world) request(p *producer) {
	r := w.randomRequest()
	w.recorded[r.TraceID] = true
	p.Keeper.Add(&r)
	r.Arrival = w.clock
	w.direct.Record(&r)
}

// randomRequest returns a request whose numbers are multiples of 2^-10, so that sums are
// exact in any order.
func (w *world) randomRequest() series.Contribution {
	v := func() float64 { return float64(w.random.IntN(1<<12)) / (1 << 10) }
	r := series.Contribution{
		Dimensions: []string{fmt.Sprint("service-", w.random.IntN(2)), fmt.Sprint("model-", w.random.IntN(2))},
		Vantage:    []string{"", "server", "client"}[w.random.IntN(3)],
		Outcome:    series.Outcome(w.random.IntN(len(series.OutcomeNames))),
		Arrival:    w.clock,
	}
	for i := range r.TraceID {
		r.TraceID[i], r.SpanID[i%8] = byte(w.random.Uint32()), byte(w.random.Uint32())
	}
	for _, q := range []numbers.ID{numbers.TimeToFirstToken, numbers.RequestDuration, numbers.QueueDuration, numbers.DecodeDuration, numbers.TimeToAnswer} {
		if w.random.IntN(3) > 0 {
			r.SetValue(q, v())
		}
	}
	var gaps sketch.Sketch
	for range w.random.IntN(30) {
		gaps.Add(v(), 1)
	}
	if gaps.Count() > 0 {
		*r.Distribution(numbers.InterTokenLatency) = series.Distribution{Sketch: gaps.AppendBinary(nil), Max: gaps.Max()}
	}
	r.SetValue(numbers.OutputTokens, float64(1+w.random.IntN(1000)))
	if w.random.IntN(2) == 0 {
		r.SetValue(numbers.StallDuration, v()+1)
		r.Latency.Absences[w.random.IntN(2)] = latency.Absence(1 + w.random.IntN(len(names.UnmeasuredReasons)))
		r.Failure = optional.Of(slo.Cause(w.random.IntN(len(names.FailureCauses))))
	}
	for i := range w.random.IntN(3) {
		r.Verdicts.Add(fmt.Sprint("slo-", i), slo.Verdict(w.random.IntN(int(slo.Verdicts))))
	}
	return r
}

// distribution is a histogram as it must be the same on both ways.
type distribution struct {
	Count, Zeros  uint64
	Sum, Min, Max float64
	Buckets       map[int]uint64
}

// state returns the numbers of an engine by series. exact includes smallest and largest
// values, which delta data points do not have.
func (w *world) state(e *series.Engine, exact bool) map[string]any {
	all := map[string]any{}
	e.Collect(w.clock, func(s *series.Snapshot) {
		for _, c := range series.Counters {
			if n, ok := s.Count(c.Count); ok {
				all[fmt.Sprintf("%q %s %s %s %s %s", s.Key, c.Name, c.Type, c.Indicator, c.Reason, c.Cause)] = n
			}
		}
		for _, o := range s.SLOs {
			all[fmt.Sprintf("%q %s", s.Key, o.Name)] = o.Requests
		}
		for i := range s.Outcomes {
			o := &s.Outcomes[i]
			if o.Empty() {
				continue
			}
			all[fmt.Sprintf("%q %s requests", s.Key, series.OutcomeNames[i])] = o.Requests
			for q := range o.Distributions {
				d := &o.Distributions[q]
				if d.Sketch.Count() == 0 {
					continue
				}
				got := distribution{Count: d.Sketch.Count(), Zeros: d.Sketch.Zeros(), Sum: d.Sketch.Sum(), Buckets: maps.Collect(d.Sketch.Buckets())}
				if exact {
					got.Min, got.Max = d.Sketch.Min(), d.Sketch.Max()
				}
				all[fmt.Sprintf("%q %s %s %s", s.Key, series.OutcomeNames[i], numbers.Table[q].Metric.Name, numbers.Table[q].Attribute)] = got
				for _, e := range d.Exemplars {
					require.True(w.t, !e.Set() || w.recorded[e.TraceID], "an exemplar of no request")
				}
			}
		}
	})
	return all
}

// Cumulative data points recover from everything; delta ones from all but lost ones.
func TestRead_AddsUpToTheRequestsOfAllProducers(t *testing.T) {
	for _, temporality := range []publish.Temporality{publish.Cumulative, publish.Delta} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprint(temporality, " ", seed), func(t *testing.T) {
				w := newWorld(t, seed, temporality)
				for range 150 {
					w.clock = w.clock.Add(time.Duration(w.random.IntN(5000)) * time.Millisecond)
					p := w.producers[w.random.IntN(len(w.producers))]
					switch w.random.IntN(12) {
					case 0, 1:
						p.fails = w.random.IntN(2) == 0
						p.Keeper.Round(t.Context())
					case 2:
						p.flush()
						w.clock = w.clock.Add(time.Second)
						p.restart()
					case 3:
						if temporality == publish.Cumulative && p.received != (pmetric.Metrics{}) {
							w.deliver(p.received) // late, after newer ones
						}
					default:
						w.request(p)
					}
				}
				w.clock = w.clock.Add(time.Second)
				for _, p := range w.producers {
					p.flush()
				}
				exact := temporality == publish.Cumulative
				want := w.state(w.direct, exact)
				require.Greater(t, len(want), 50)
				require.Equal(t, want, w.state(w.read, exact))
				require.Positive(t, w.tally.Ignored[metricreader.Repeated])
				for reason, n := range w.tally.Ignored {
					require.True(t, n == 0 || metricreader.Reason(reason) == metricreader.Repeated, "%d points ignored: %s", n, metricreader.ReasonNames[reason])
				}
			})
		}
	}
}
