// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/pmetric"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// ttftSLO is breached by streams whose first token takes more than a second.
func ttftSLO(cfg *Config) {
	latency := annotate.DefaultConfig()
	latency.SLOs = []judge.SLOConfig{{Name: "ttft", Indicator: "time_to_first_token", Threshold: "1s"}}
	cfg.Latency = configoptional.Some(*latency)
}

func selecting(share float64, breached bool) func(*Config) {
	return func(cfg *Config) { cfg.Spans = SpansConfig{Share: share, Breached: breached} }
}

// sendStream sends a whole stream whose first token takes that long.
func (b *bench) sendStream(t *testing.T, id string, firstToken time.Duration) {
	t.Helper()
	require.Equal(t, 200, b.lines(t, linesOf(id, firstToken)...).status)
}

// linesOf returns a whole stream of one token, which takes that long and is a second before the end.
func linesOf(id string, firstToken time.Duration, more ...string) []string {
	end := fmt.Sprintf(`{"event":"end","stream_id":%q,"time_unix_nano":"%d"}`, id, at(firstToken+time.Second))
	return []string{startWith(id, at(0), more...), chunkLine(id, firstToken), end}
}

// rejects is the rule of the specification, for trace IDs in hexadecimal: a span is kept if the last 56
// bits of its trace ID are at least the threshold, which lacks trailing zeros.
func rejects(t *testing.T, threshold, traceID string) bool {
	t.Helper()
	th, err := strconv.ParseUint(threshold+strings.Repeat("0", 14-len(threshold)), 16, 64)
	require.NoError(t, err)
	randomness, err := strconv.ParseUint(traceID[len(traceID)-14:], 16, 64)
	require.NoError(t, err)
	return randomness < th
}

func TestSpans_ShareIsConsistentByTraceID(t *testing.T) {
	for share, threshold := range map[float64]string{
		1: "0", 0.5: "8", 0.25: "c", 0.01: "fd70a", 1. / 3: "aaab", 0.9: "199a", 1e-12: "ffffffffffee68",
	} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			p := inMetricsPipeline(t, new(sink), selecting(share, true), ttftSLO)
			p.start(t)
			random := rand.New(rand.NewPCG(1, 2))
			const streams = 20_000 / testenv.RaceSlowdown
			sent := map[string]bool{}
			var lines []string
			for i := range streams {
				id := fmt.Sprintf("%016x%016x", random.Uint64(), random.Uint64())
				sent[id] = true
				lines = append(lines, linesOf(strconv.Itoa(i), 0, fmt.Sprintf(`"trace_id":%q`, id))...)
			}
			require.Equal(t, 200, p.lines(t, lines...).status)
			kept := 0
			for id := range sent {
				if !rejects(t, threshold, id) {
					kept++
				}
			}
			spans := p.sink.all()
			require.Len(t, spans, kept)
			for i := range spans {
				require.True(t, sent[spans[i].Trace])
				require.False(t, rejects(t, threshold, spans[i].Trace), "kept, though its randomness is under the threshold")
				require.Equal(t, "ot=th:"+threshold, spans[i].State)
				require.Equal(t, true, spans[i].Attributes[names.Aggregated])
			}
			deviation := math.Sqrt(streams * share * (1 - share))
			require.InDelta(t, streams*share, kept, 5*deviation+1, "of %d", streams)
			p.stop(t)
			require.Equal(t, map[string]int64{"success": streams}, p.requests(), "every request counts, with or without a span")
		})
	}
}

// A trace ID that the receiver derives is as random as one of a sender.
func TestSpans_ShareOfDerivedTraceIDs(t *testing.T) {
	p := inMetricsPipeline(t, new(sink), selecting(0.1, true))
	p.start(t)
	const streams = 20_000 / testenv.RaceSlowdown
	var lines []string
	for i := range streams {
		lines = append(lines, linesOf(fmt.Sprint("stream-", i), 0)...)
	}
	require.Equal(t, 200, p.lines(t, lines...).status)
	require.InDelta(t, streams/10, len(p.sink.all()), 5*math.Sqrt(streams*0.1*0.9))
}

// Whole streams, which bypass the store unless they become spans, become the same spans as in a
// receiver that sends all, and count as often.
func TestSpans_ShareOfWholeStreams(t *testing.T) {
	var groups []*tokenpulsev1.ResourceTokenStreams
	for _, service := range []string{"large ", "other "} {
		groups = append(groups, &tokenpulsev1.ResourceTokenStreams{Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{
			str(names.ServiceName, strings.Repeat(service, 200)),
		}}})
	}
	const streams = 1000
	for i := range streams {
		begin := uint64(t0) + uint64(i)
		first := begin + 1e8
		if i%50 == 0 {
			first = begin + 2e9
		}
		s := &tokenpulsev1.TokenStream{
			StreamId:  fmt.Sprint("whole-", i),
			Start:     &tokenpulsev1.StreamStart{TimeUnixNano: begin, Attributes: []*commonpb.KeyValue{str(names.GenAIRequestModel, []string{"judged", "other"}[i%2])}},
			ChunkRuns: []*tokenpulsev1.ChunkRun{{TimeUnixNano: first, DeltaUnitNanos: 1000, TimeDeltas: []int64{0, 20_000}}},
			End:       &tokenpulsev1.StreamEnd{TimeUnixNano: first + 1e9},
		}
		if i%3 == 0 {
			s.Start.TraceId = fmt.Appendf(nil, "%08d%c%c%c%c%c%c%c%c", i, i, i>>2, i*7, i*13, i*31, i*57, i*91, i*111)[:16]
		}
		group := groups[2*i/streams]
		group.TokenStreams = append(group.TokenStreams, s)
	}
	body, err := proto.Marshal(&tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: groups})
	require.NoError(t, err)
	run := func(share float64, breached bool) map[string]span {
		p := inMetricsPipeline(t, new(sink), selecting(share, breached), ttftSLO, func(cfg *Config) {
			cfg.Latency.Get().SLOs[0].Match = map[string]string{names.GenAIRequestModel: "judged"}
			series := publish.NewDefaultConfig()
			series.Shared.Series.Dimensions = nil
			cfg.Series = configoptional.Some(series)
		})
		p.start(t)
		for range 2 { // the second time as a sender that lost the answer
			require.Equal(t, 200, p.post(t, typeProtobuf, bytes.NewReader(body)).status)
		}
		spans := map[string]span{}
		for _, s := range p.sink.all() {
			spans[s.ID] = s
		}
		p.stop(t)
		require.Equal(t, map[string]int64{"success": streams}, p.requests())
		return spans
	}
	all := run(1, true)
	require.Len(t, all, streams)
	for _, breached := range []bool{true, false} {
		sent := run(0.25, breached)
		outside := 0
		for id, s := range all {
			_, isBreach := s.Attributes[names.SLOBreached]
			require.Equal(t, isBreach, s.Attributes[names.GenAIRequestModel] == "judged" && s.Attributes["tokenpulse.time_to_first_token"] == 2.0)
			kept := !rejects(t, "c", s.Trace)
			if isBreach && !kept && breached {
				kept = true
				outside++
			}
			got, ok := sent[id]
			require.Equal(t, kept, ok, s.Trace)
			if ok {
				require.Equal(t, s.Attributes, got.Attributes)
				require.Equal(t, s.Trace, got.Trace)
			}
		}
		if breached {
			require.Positive(t, outside)
		}
	}
}

// Rules that depend on what a request reports are judged before its span is made, too.
func TestSpans_BreachOfARuleOnTheRequest(t *testing.T) {
	p := inMetricsPipeline(t, new(sink), selecting(0, true), ttftSLO, func(cfg *Config) {
		slo := &cfg.Latency.Get().SLOs[0]
		slo.MatchRegexp = map[string]string{names.GenAITimeToFirstChunk: ".*", "tokenpulse.token_count": "1"}
	})
	p.start(t)
	p.sendStream(t, "not matched", 2*time.Second)
	require.Equal(t, 200, p.lines(t, linesOf("matched", 2*time.Second, `"attributes":{"gen_ai.response.time_to_first_chunk":2}`)...).status)
	require.Equal(t, []any{"ttft"}, p.sink.one(t).Attributes[names.SLOBreached])
}

func TestSpans_ClientMistakeIsNoBreachUnlessAnSLOCountsIt(t *testing.T) {
	for counted, spans := range map[string]int{"": 0, "bad": 1} {
		p := inMetricsPipeline(t, new(sink), selecting(0, true), ttftSLO, func(cfg *Config) { cfg.Latency.Get().SLOs[0].ClientErrors = counted })
		p.start(t)
		mistake := fmt.Sprintf(`{"event":"end","stream_id":"s","time_unix_nano":"%d","error":"unauthorized"}`, at(time.Second))
		require.Equal(t, 200, p.lines(t, startWith("s", at(0), `"attributes":{"http.response.status_code":401}`), mistake).status)
		require.Len(t, p.sink.all(), spans, "client_errors: %q", counted)
	}
}

// An exemplar points at a span that was sent.
func TestSpans_ExemplarsAreOfSentSpans(t *testing.T) {
	p := inMetricsPipeline(t, new(sink), selecting(0.2, true), ttftSLO)
	p.start(t)
	for request := range 20 { // with sent and other streams in each
		var lines []string
		for i := range 10 {
			firstToken := time.Duration(1+i) * 100 * time.Millisecond
			if i == 3 {
				firstToken = 2 * time.Second
			}
			lines = append(lines, linesOf(fmt.Sprint(request, "-", i), firstToken)...)
		}
		require.Equal(t, 200, p.lines(t, lines...).status)
	}
	spans := map[string]bool{}
	for _, span := range p.sink.all() {
		spans[span.Trace+span.ID] = true
	}
	require.Less(t, len(spans), 120)
	p.stop(t)
	exemplars := 0
	for _, metrics := range p.metrics.AllMetrics() {
		for _, resource := range metrics.ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					if m.Type() != pmetric.MetricTypeExponentialHistogram {
						continue
					}
					for _, point := range m.ExponentialHistogram().DataPoints().All() {
						for _, e := range point.Exemplars().All() {
							exemplars++
							require.True(t, spans[e.TraceID().String()+e.SpanID().String()], "%s: %s", m.Name(), e.TraceID())
						}
					}
				}
			}
		}
	}
	require.Positive(t, exemplars)
}

func TestSpans_ShareNeedsAMetricsPipeline(t *testing.T) {
	b := prepare(t, selecting(0.01, true))
	require.ErrorContains(t, b.Start(t.Context(), componenttest.NewNopHost()),
		"`spans::share` is 0.01, but the receiver is in no metrics pipeline, so that the other requests would count nowhere; add it to a metrics pipeline, or remove `share`")
}

func TestSpans_BreachesOnlyNeedSLOs(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	selecting(0, true)(cfg)
	require.EqualError(t, cfg.Validate(), "`spans::share` is 0 and `latency` has no `slos` to breach, which selects no span; "+
		"set `latency::slos` or a share, or remove the receiver from its traces pipelines and `spans` from its settings")
	ttftSLO(cfg)
	require.NoError(t, cfg.Validate())
	cfg.Latency.Get().SLOs = nil
	selecting(0.01, true)(cfg) // breached is the default
	require.NoError(t, cfg.Validate())
}

func TestSpans_InvalidSettings(t *testing.T) {
	for message, spans := range map[string]SpansConfig{
		"`share` is 1.01; use a number from 0 to 1, such as 0.01 for 1%": {Share: 1.01, Breached: true},
		"`share` is -1; use a number from 0 to 1":                        {Share: -1},
		"`share` is NaN; use a number from 0 to 1":                       {Share: math.NaN()},
		"`share` is 0 and `breached` is false, which selects no span":    {},
		"`share` is 1e-20; use at least 1.387":                           {Share: 1e-20},
	} {
		require.ErrorContains(t, spans.Validate(), message)
	}
}
