// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/latencyreport"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamspan"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/wire"
)

// A receiver with `latency` sends the spans of a plain receiver and token_latency behind it, bit by
// bit. Only the order of attributes may differ.
func TestLatency_SpansEqualThoseOfTokenLatency(t *testing.T) {
	standard := map[string]any{}
	slos := []any{
		map[string]any{"name": "ttft", "indicator": "time_to_first_token", "threshold": "150ms", "threshold_attribute": "tenant.ttft"},
		map[string]any{"name": "tpot of model a", "indicator": "time_per_output_token", "threshold": "10ms", "match": map[string]any{names.GenAIRequestModel: "a"}},
		map[string]any{"name": "gaps", "indicator": "inter_chunk_latency.p95", "threshold": "10ms", "match_regexp": map[string]any{names.ServiceName: "chat|agent"}},
		map[string]any{"name": "stalls", "indicator": "stall.count", "threshold": 0.5, "match": map[string]any{names.Vantage: "client"}},
		map[string]any{"name": "stalled", "indicator": "stall.duration", "threshold": "1s"},
		map[string]any{"name": "availability", "indicator": "outcome", "match_regexp": map[string]any{names.GenAIOutputTokens: "[0-9]+"}},
		map[string]any{"name": "chunks", "indicator": "chunk.count", "threshold": 4, "match_regexp": map[string]any{names.Outcome: "success|cancelled"}},
		map[string]any{"name": "answer", "indicator": "trace.time_to_answer", "threshold": "1s"},
	}
	fluidity := map[string]any{"time_to_first_token": "200ms", "time_per_output_token": "10ms"}
	settings := map[string]map[string]any{
		"default":      standard,
		"full":         {"detail": "full", "timeline": "keep"},
		"no sketches":  {"distribution": "drop", "detail": "full", "tpot_denominator": "after_first_chunk"},
		"SLOs":         {"slos": slos, "stall_threshold": "20ms", "events": true},
		"everything":   {"slos": slos, "fluidity": fluidity, "detail": "full", "timeline": "keep", "trust_annotations": false},
		"fluidity":     {"fluidity": fluidity, "timeline": "keep"},
		"denominators": {"tpot_denominator": "after_first_chunk", "slos": slos[:1]},
	}
	outcomes := map[string]int{}
	for name, latency := range settings {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, uint64(len(name))))
			r := withLatency(t, latency)
			token := tokenlatencyprocessor.NewFactory()
			cfg := token.CreateDefaultConfig()
			require.NoError(t, confmap.NewFromStringMap(latency).Unmarshal(cfg))
			sink := new(consumertest.TracesSink)
			p, err := token.CreateTraces(t.Context(), processortest.NewNopSettings(token.Type()), cfg, sink)
			require.NoError(t, err)
			require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
			for range 60 {
				for _, finished := range randomStreams(t, r, random) {
					plain := streamspan.New(&streamspan.Settings{}).Make(finished, nil)
					require.NoError(t, p.ConsumeTraces(t.Context(), plain.Traces))
					expected := sink.AllTraces()[0]
					sink.Reset()
					actual := streamspan.New(&r.ingester.Spans).Make(finished, new(latencyreport.Tally))
					require.Equal(t, plain.Removed, actual.Removed)
					requireSameSpans(t, expected, actual.Traces, outcomes)
				}
			}
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
	for _, seen := range []string{
		names.OutcomeSuccess, names.OutcomeError, names.OutcomeCancelled, names.OutcomeIncomplete, names.Buffered, "tokenpulse.stall.count",
		"tokenpulse.clock.anomalies", names.Cut, names.ChunksDropped, "tokenpulse.queue.duration", names.SLOBreached,
		names.SLONotEligible, names.SLOMet, "tokenpulse.time_per_output_token", "tokenpulse.fluidity_index", "tokenpulse.token_count.mismatch", "tokenpulse.inter_chunk_latency.sketch",
		names.Unmeasured, names.Estimated, names.StalledAtEnd, "request.duration on an unset clock", names.GenAIProviderName,
	} {
		require.Positive(t, outcomes[seen], seen)
	}
}

// withLatency returns a receiver that drops chunks early.
func withLatency(t *testing.T, latency map[string]any) *tokenStreamReceiver {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"latency": latency, "max_chunks_per_stream": 40}).Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	require.True(t, cfg.Latency.HasValue())
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type))
	require.NoError(t, err)
	return r
}

// randomStreams sends streams with and without an end to a receiver, and returns those that finished
// and those that the receiver cuts or expires.
func randomStreams(t *testing.T, r *tokenStreamReceiver, random *rand.Rand) (finished [][]assembly.Finished) {
	t.Helper()
	message := &tokenpulsev1.ExportTokenStreamsRequest{}
	for resource := range 3 {
		group := &tokenpulsev1.ResourceTokenStreams{Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{
			str(names.ServiceName, []string{"chat", "agent", "other"}[resource]),
		}}}
		if resource == 2 {
			group.Resource.Attributes = append(group.Resource.Attributes, str("tenant.ttft", "90ms"))
		}
		for i := range 30 {
			group.TokenStreams = append(group.TokenStreams, randomStream(random, fmt.Sprintf("%d-%d", resource, i)))
		}
		message.ResourceTokenStreams = append(message.ResourceTokenStreams, group)
	}
	encoded, err := proto.Marshal(message)
	require.NoError(t, err)
	batch := r.ingester.Store.NewBatch()
	var decoder wire.TokenStreams
	require.NoError(t, decoder.Decode(encoded, batch, func(_ int, _ string, err error) { require.NoError(t, err) }))
	tx, err := r.ingester.Store.Begin(t.Context(), batch)
	require.NoError(t, err)
	finished = append(finished, tx.Finished)
	require.NoError(t, tx.Commit())
	now := r.ingester.Now()
	if random.IntN(2) == 0 {
		now += time.Hour // all have expired
	}
	cut := r.ingester.Store.Cut(assembly.Timeouts{Idle: time.Minute, FirstToken: time.Minute}, now, math.MaxInt)
	finished = append(finished, cut.Finished)
	require.NoError(t, cut.Commit())
	require.Zero(t, r.ingester.Store.Streams())
	return finished
}

func numberAttribute(key string, value any) *commonpb.KeyValue {
	v := &commonpb.AnyValue{}
	switch value := value.(type) {
	case int:
		v.Value = &commonpb.AnyValue_IntValue{IntValue: int64(value)}
	case float64:
		v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: value}
	}
	return &commonpb.KeyValue{Key: key, Value: v}
}

// randomAttributes returns attributes that token_latency or an SLO reads, of any type.
func randomAttributes(random *rand.Rand) (attributes []*commonpb.KeyValue) {
	for range random.IntN(5) {
		var aliases []string
		for _, list := range names.Aliases {
			aliases = append(aliases, list...)
		}
		key := aliases[random.IntN(len(aliases))]
		switch random.IntN(8) {
		case 0:
			key = "tenant.ttft"
		case 1:
			key = names.Prefix + []string{"outcome", "vantage", "time_to_first_token", "slo.met", "of.nobody"}[random.IntN(5)]
		case 2:
			key = names.GenAIOutputTokens
		}
		switch random.IntN(5) {
		case 0, 1:
			attributes = append(attributes, str(key, []string{"chat", "7", "-1", "many", "120ms", "0.2", "aborted", "true", ""}[random.IntN(9)]))
		case 2:
			attributes = append(attributes, numberAttribute(key, random.IntN(40)-5))
		case 3:
			attributes = append(attributes, numberAttribute(key, random.Float64()*100-10))
		default:
			attributes = append(attributes, str(names.GenAIRequestModel, string("ab"[random.IntN(2)])))
		}
	}
	return attributes
}

func randomStream(random *rand.Rand, id string) *tokenpulsev1.TokenStream {
	chance := func(n int) bool { return random.IntN(n) == 0 }
	start := uint64(1_795_233_292_000_000_000 + random.Int64N(1e9))
	s := &tokenpulsev1.TokenStream{StreamId: id}
	if !chance(8) {
		s.Start = &tokenpulsev1.StreamStart{TimeUnixNano: start, Vantage: tokenpulsev1.Vantage(random.IntN(5)), Attributes: randomAttributes(random)}
	}
	at := start + uint64(random.Int64N(300e6))
	if chance(3) {
		s.ScheduledTimeUnixNano = start + uint64(random.Int64N(100e6)) - uint64(random.IntN(2))*uint64(random.Int64N(200e6))
	}
	pace := []int64{30e6, 3e6, 2000}[random.IntN(3)] // the last one is buffered
	for range random.IntN(4) {
		run := &tokenpulsev1.ChunkRun{Channel: tokenpulsev1.Channel(random.IntN(3)), TimeUnixNano: at, DeltaUnitNanos: 1000}
		if chance(12) {
			run.FirstSequenceNumber = proto.Uint64(uint64(random.IntN(40)))
		}
		for i := range 1 + random.IntN(25) {
			gap := random.Int64N(pace)
			if chance(40) {
				gap = []int64{700e6, -50e6, 0}[random.IntN(3)]
			}
			if i == 0 {
				gap = 0
			}
			run.TimeDeltas = append(run.TimeDeltas, gap/1000)
			at = uint64(int64(at) + gap/1000*1000)
			run.Tokens = append(run.Tokens, 1)
			if chance(15) {
				run.Tokens[len(run.Tokens)-1] = uint32(random.IntN(5))
			}
		}
		if chance(2) {
			run.Tokens = nil
		}
		s.ChunkRuns = append(s.ChunkRuns, run)
		at += uint64(random.Int64N(50e6))
	}
	if !chance(6) || len(s.ChunkRuns) == 0 && s.Start == nil {
		s.End = &tokenpulsev1.StreamEnd{Attributes: randomAttributes(random)}
		if !chance(5) {
			s.End.TimeUnixNano = at + uint64(random.Int64N(100e6)) + uint64(random.IntN(2))*uint64(random.Int64N(2e9))
		}
		if chance(10) {
			s.End.TimeUnixNano = start - uint64(random.Int64N(1e9)) // a clock that goes back
		}
		if chance(4) {
			s.End.Error = "overloaded"
		}
		s.End.Cancelled = chance(4)
		if chance(2) {
			s.End.FinishReason = []string{"stop", "abort", "error"}[random.IntN(3)]
		}
		if chance(2) {
			s.End.Usage = &tokenpulsev1.Usage{OutputTokens: proto.Uint64(uint64(random.IntN(60))), InputTokens: proto.Uint64(550)}
		}
	}
	return s
}

// requireSameSpans compares the encodings of traces with sorted attributes, and counts what occurs.
func requireSameSpans(t *testing.T, expected, actual ptrace.Traces, seen map[string]int) {
	t.Helper()
	sorted := func(traces ptrace.Traces) (spans []ptrace.Span) {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					spans = append(spans, span)
					sortAttributes(span)
				}
			}
		}
		return spans
	}
	left, right := sorted(expected), sorted(actual)
	require.Len(t, right, len(left))
	for i := range left {
		require.Equal(t, left[i].Attributes().AsRaw(), right[i].Attributes().AsRaw())
		for key, v := range right[i].Attributes().All() {
			seen[key]++
			if key == names.Outcome {
				seen[v.Str()]++
			}
		}
		if _, measured := right[i].Attributes().Get("tokenpulse.request.duration"); !measured && right[i].EndTimestamp() < right[i].StartTimestamp() {
			seen["request.duration on an unset clock"]++
		}
	}
	marshaler := new(ptrace.ProtoMarshaler)
	a, err := marshaler.MarshalTraces(expected)
	require.NoError(t, err)
	b, err := marshaler.MarshalTraces(actual)
	require.NoError(t, err)
	require.Equal(t, a, b)
}

func sortAttributes(span ptrace.Span) {
	var keys []string
	for key := range span.Attributes().All() {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, strings.Compare)
	unsorted := ptrace.NewSpan()
	span.Attributes().MoveTo(unsorted.Attributes())
	for _, key := range keys {
		v, _ := unsorted.Attributes().Get(key)
		v.CopyTo(span.Attributes().PutEmpty(key))
	}
}

func TestLatency_ReportsErrorsOfTokenLatency(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"latency": map[string]any{"detail": "all"}}).Unmarshal(cfg))
	require.ErrorContains(t, confmap.Validate(cfg), "latency: `detail` is \"all\"; valid values: standard, full")
}
