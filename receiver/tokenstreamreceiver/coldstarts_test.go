// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

func withColdStarts(cfg *Config) {
	latency := annotate.DefaultConfig()
	slo := func(name, cold string) any {
		return map[string]any{"name": name, "indicator": "outcome", "match": map[string]any{names.Cold: cold}}
	}
	err := confmap.NewFromStringMap(map[string]any{
		"cold_start": map[string]any{"requests": 3, "duration": "10s", "idle": "1m"},
		"slos":       []any{slo("warm", "false"), slo("cold", "true")},
	}).Unmarshal(latency)
	if err != nil {
		panic(err)
	}
	cfg.Latency = configoptional.Some(*latency)
}

func withColdDimension(cfg *Config) {
	s := publish.NewDefaultConfig()
	s.Shared.Series.Dimensions = series.DimensionsOf(names.Cold)
	cfg.Series = configoptional.Some(s)
}

// coldStream is a stream, sent whole.
type coldStream struct {
	id, replica string
	open        reference.Interval
	end         time.Time // when it is sent
	cold        bool
}

// coldTrace returns streams of several replicas, in the order in which they are sent.
func coldTrace(began time.Time) (all []*coldStream) {
	random := rand.New(rand.NewPCG(5, 6))
	for replica := range 5 {
		at := began.Add(-20 * time.Second) // some are seen before the Collector knows
		if replica%2 == 0 {
			at = began.Add(time.Hour)
		}
		for i := range 60 {
			at = at.Add(time.Duration(1 + random.Int64N(int64(5*time.Second))))
			if random.IntN(10) == 0 {
				at = at.Add(30*time.Second + time.Duration(random.Int64N(int64(time.Minute))))
			}
			end := at.Add(time.Duration(random.Int64N(int64(20 * time.Second))))
			late := time.Duration(random.Int64N(2) * random.Int64N(int64(30*time.Second)))
			all = append(all, &coldStream{fmt.Sprint(replica, "-", i), fmt.Sprint("replica-", replica), reference.Interval{Start: at, End: end}, end.Add(late), false})
		}
	}
	slices.SortFunc(all, func(a, b *coldStream) int { return a.end.Compare(b.end) })
	by := map[string][]*coldStream{}
	for _, s := range all {
		by[s.replica] = append(by[s.replica], s)
	}
	for _, streams := range by {
		var open []reference.Interval
		for _, s := range streams {
			open = append(open, s.open)
		}
		for i, cold := range reference.ColdStarts(open, began, 3, 10*time.Second, time.Minute) {
			streams[i].cold = cold
		}
	}
	return all
}

func (s *coldStream) lines(random *rand.Rand) []string {
	named := instance(s.replica)
	if s.replica == "replica-2" { // the address may come with the end only
		return []string{
			startWith(s.id, uint64(s.open.Start.UnixNano()), `"attributes":{"server.address":"10.0.0.1"}`),
			fmt.Sprintf(`{"event":"end","stream_id":%q,"time_unix_nano":"%d","attributes":{"server.port":8000,"user.id":"%d"}}`,
				s.id, s.open.End.UnixNano(), random.Int64()),
		}
	}
	if s.replica == "replica-4" {
		named = `"resource":{"k8s.pod.name":"replica-4"}`
	}
	return []string{
		startWith(s.id, uint64(s.open.Start.UnixNano()), named, fmt.Sprintf(`"attributes":{"user.id":"%d"}`, random.Int64())),
		fmt.Sprintf(`{"event":"end","stream_id":%q,"time_unix_nano":"%d"}`, s.id, s.open.End.UnixNano()),
	}
}

// counts returns the value of a counter by a label, as sent last.
func (p *pipelines) counts(counter, label string) map[string]float64 {
	by, all := map[string]float64{}, p.metrics.AllMetrics()
	for _, resource := range all[len(all)-1].ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				if m.Name() != counter {
					continue
				}
				for _, point := range m.Sum().DataPoints().All() {
					value := ""
					if v, ok := point.Attributes().Get(label); ok {
						value = v.AsString()
					}
					by[value] += point.DoubleValue() + float64(point.IntValue())
				}
			}
		}
	}
	return by
}

// Spans and series agree with a recount, also where only some streams become spans.
func TestColdStart_EqualsARecount(t *testing.T) {
	for _, batch := range []int{1, 7} {
		for _, share := range []float64{1, 0.3, 0} {
			t.Run(fmt.Sprintf("share %v, batches of %d", share, batch), func(t *testing.T) {
				began := time.Now()
				spans := new(sink)
				changes := []func(*Config){withColdStarts, withColdDimension}
				if share > 0 {
					changes = append(changes, selecting(share, false))
				} else {
					spans = nil
				}
				p := inMetricsPipeline(t, spans, changes...)
				p.start(t)
				all := coldTrace(began)
				random, want, cold := rand.New(rand.NewPCG(1, 1)), map[string]float64{}, map[uint64]bool{}
				for some := range slices.Chunk(all, batch) {
					var lines []string
					for _, s := range some {
						lines = append(lines, s.lines(random)...)
						want[map[bool]string{true: "true", false: ""}[s.cold]]++
						cold[uint64(s.open.Start.UnixNano())] = s.cold
					}
					atOnce := len(lines)
					if batch == 1 {
						atOnce = 1 // the end comes later
					}
					for request := range slices.Chunk(lines, atOnce) {
						require.Equal(t, 200, p.lines(t, request...).status)
					}
				}
				p.stop(t)
				require.Equal(t, want, p.counts("tokenpulse.requests", names.Cold))
				require.Equal(t, map[string]float64{"warm": want[""], "cold": want["true"], "all": float64(len(all))}, p.counts("tokenpulse.slo.requests", "slo"))
				require.Greater(t, want["true"], 50.)
				require.Greater(t, want[""], 50.)
				if spans == nil {
					return
				}
				require.NotEmpty(t, spans.all())
				for _, s := range spans.all() {
					v, exists := s.Attributes[names.Cold]
					require.Equal(t, cold[s.Start], exists)
					require.True(t, !exists || v == true)
				}
			})
		}
	}
}

// judged returns the SLOs that apply to the request of a span.
func judged(s span) (all []any) {
	for _, list := range []string{names.SLOMet, names.SLOBreached, names.SLONotEligible} {
		if slos, ok := s.Attributes[list].([]any); ok {
			all = append(all, slos...)
		}
	}
	return all
}

func TestColdStart_OfSpansInATracesPipeline(t *testing.T) {
	began := time.Now()
	b := start(t, withColdStarts)
	all := coldTrace(began)
	random, cold := rand.New(rand.NewPCG(1, 1)), map[uint64]bool{}
	for _, s := range all {
		require.Equal(t, 200, b.lines(t, s.lines(random)...).status)
		cold[uint64(s.open.Start.UnixNano())] = s.cold
	}
	require.Len(t, b.sink.all(), len(all))
	for _, s := range b.sink.all() {
		_, exists := s.Attributes[names.Cold]
		require.Equal(t, cold[s.Start], exists)
		require.Equal(t, []any{map[bool]string{true: "cold", false: "warm"}[exists]}, judged(s))
	}
}
