// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
)

// latencyRoutes are the ways on which a receiver derives latencies. A breached SLO makes those with a
// selection look at a stream several times.
var latencyRoutes = map[string]latencyRoute{
	"spans":                  {spans: true},
	"series":                 {metrics: true},
	"series and all spans":   {spans: true, metrics: true},
	"series and a share":     {spans: true, metrics: true, change: selecting(0.5, true)},
	"series and breaches":    {spans: true, metrics: true, change: selecting(0, true)},
	"series by way of spans": {spans: true, metrics: true, change: byWayOfSpans},
}

type latencyRoute struct {
	spans, metrics bool
	change         func(*Config)
}

func byWayOfSpans(cfg *Config) {
	selecting(0.5, true)(cfg)
	published := publish.NewDefaultConfig()
	published.Shared.Series.Dimensions = series.DimensionsOf(names.GenAIOutputTokens)
	cfg.Series = configoptional.Some(published)
}

// reporting is a receiver whose self-metrics and log lines are collected, together with those of a
// token_latency processor behind it.
type reporting struct {
	*tokenStreamReceiver
	sink      *sink
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
	component string // that derives latencies
}

// startReporting returns a receiver on a route, or a plain one with a processor behind it if the route
// is nil.
func startReporting(t *testing.T, route *latencyRoute) *reporting {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	telemetry, settings := withTelemetry(t)
	r := &reporting{sink: new(sink), telemetry: telemetry, logs: logs, component: "receiver_token_stream"}
	settings.Logger = zap.New(core)
	latency := confmap.NewFromStringMap(map[string]any{"slos": []any{
		map[string]any{"name": "breached", "indicator": "time_to_first_token", "threshold": "1ns"},
		map[string]any{"name": "of a number", "indicator": "request.duration", "threshold": "1s", "match": map[string]any{"tokenpulse.token_count": "3"}},
	}})
	cfg := createDefaultConfig().(*Config)
	cfg.MaxChunksPerStream = 40
	if route != nil {
		require.NoError(t, confmap.NewFromStringMap(map[string]any{"latency": latency.ToStringMap()}).Unmarshal(cfg))
		if route.change != nil {
			route.change(cfg)
		}
	}
	require.NoError(t, cfg.Validate())
	var err error
	r.tokenStreamReceiver, err = newReceiver(cfg, settings)
	require.NoError(t, err)
	if route == nil {
		r.component = "processor_token_latency"
		token := tokenlatencyprocessor.NewFactory()
		cfg := token.CreateDefaultConfig()
		require.NoError(t, latency.Unmarshal(cfg))
		set := processortest.NewNopSettings(token.Type())
		set.TelemetrySettings = settings.TelemetrySettings
		p, err := token.CreateTraces(t.Context(), set, cfg, r.sink)
		require.NoError(t, err)
		r.sendTraces(p)
		return r
	}
	if route.spans {
		r.sendTraces(r.sink)
	}
	if route.metrics {
		require.NoError(t, r.sendMetrics(new(consumertest.MetricsSink)))
	}
	return r
}

// send sends whole streams, all of one service.
func (r *reporting) send(t *testing.T, streams ...*tokenpulsev1.TokenStream) *ingest.Refusal {
	t.Helper()
	encoded, err := proto.Marshal(&tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{str(names.ServiceName, "chat")}}, TokenStreams: streams,
	}}})
	require.NoError(t, err)
	req := take(t, r.tokenStreamReceiver, new(ingest.Answer))
	defer r.ingester.Put(req)
	require.NoError(t, req.ReadProtobuf(encoded))
	return req.Commit(t.Context())
}

// counted returns the clock anomalies and the rejected values, by reason.
func (r *reporting) counted() map[string]int64 {
	counted := map[string]int64{}
	for _, name := range []string{"clock_anomalies", "values_rejected"} {
		m, err := r.telemetry.GetMetric("otelcol_" + r.component + "_" + name)
		if err != nil { // nothing was counted
			continue
		}
		for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
			reason, _ := point.Attributes.Value("reason")
			counted[strings.TrimSpace(name+" "+reason.AsString())] = point.Value
		}
	}
	return counted
}

// noticed returns the number of log lines about missing latencies, by text and fields.
func (r *reporting) noticed() map[string]int {
	noticed := map[string]int{}
	for _, entry := range r.logs.All() {
		if strings.Contains(entry.Message, "remedy: ") {
			noticed[fmt.Sprint(entry.Level, " ", entry.Message, " ", entry.ContextMap())]++
		}
	}
	return noticed
}

// Whichever way the receiver derives the latency of streams, it reports what token_latency reports.
func TestLatencyReport_EqualsThatOfTokenLatency(t *testing.T) {
	for name, route := range latencyRoutes {
		t.Run(name, func(t *testing.T) {
			want, got := startReporting(t, nil), startReporting(t, &route)
			random := rand.New(rand.NewPCG(11, 1))
			for i := range 40 {
				var streams []*tokenpulsev1.TokenStream
				for j := range 20 {
					stream := randomStream(random, fmt.Sprintf("%d-%d", i, j))
					if route.metrics {
						removeTimesToFirstChunk(stream)
					}
					streams = append(streams, stream)
				}
				require.Nil(t, want.send(t, streams...))
				require.Nil(t, got.send(t, streams...))
			}
			require.NoError(t, want.Shutdown(t.Context())) // ends the open streams
			require.NoError(t, got.Shutdown(t.Context()))
			require.Equal(t, want.counted(), got.counted())
			for _, metric := range []string{
				"clock_anomalies", "values_rejected negative", "values_rejected longer_than_request", "values_rejected unusable",
			} {
				require.Positive(t, want.counted()[metric], metric)
			}
			lines := func(r *reporting) []string { return slices.Sorted(maps.Keys(r.noticed())) }
			require.Equal(t, lines(want), lines(got))
			require.GreaterOrEqual(t, len(lines(want)), 4)
		})
	}
}

// removeTimesToFirstChunk removes the attributes that are not read for series.
func removeTimesToFirstChunk(stream *tokenpulsev1.TokenStream) {
	is := func(a *commonpb.KeyValue) bool { return slices.Contains(names.Aliases[names.TimeToFirstChunk], a.Key) }
	if stream.Start != nil {
		stream.Start.Attributes = slices.DeleteFunc(stream.Start.Attributes, is)
	}
	if stream.End != nil {
		stream.End.Attributes = slices.DeleteFunc(stream.End.Attributes, is)
	}
}

// requestOfStreams encodes a request of streams.
func requestOfStreams(t testing.TB, streams ...*tokenpulsev1.TokenStream) []byte {
	t.Helper()
	encoded, err := proto.Marshal(&tokenpulsev1.ExportTokenStreamsRequest{
		ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{{TokenStreams: streams}},
	})
	require.NoError(t, err)
	return encoded
}

// finishedStream returns a stream of three tokens with its end.
func finishedStream(id string) *tokenpulsev1.TokenStream {
	return &tokenpulsev1.TokenStream{
		StreamId: id, Start: &tokenpulsev1.StreamStart{TimeUnixNano: uint64(t0)},
		ChunkRuns: []*tokenpulsev1.ChunkRun{{TimeUnixNano: uint64(t0) + 1e9, DeltaUnitNanos: 1000, TimeDeltas: []int64{0, 20_000, 30_000}}},
		End:       &tokenpulsev1.StreamEnd{TimeUnixNano: uint64(t0) + 2e9},
	}
}

// flawedStreams returns streams with one flaw each.
func flawedStreams(round int) []*tokenpulsev1.TokenStream {
	streams := make([]*tokenpulsev1.TokenStream, 7)
	for i := range streams {
		streams[i] = finishedStream(fmt.Sprint(round, "-", i))
	}
	streams[0].ChunkRuns[0].TimeDeltas = []int64{0, 20_000, -5_000, 30_000}
	streams[0].ChunkRuns[0].FirstSequenceNumber = new(uint64) // without, chunks are in the order of their times
	streams[1].ScheduledTimeUnixNano = uint64(t0) - 50e6
	streams[2].ScheduledTimeUnixNano = streams[2].End.TimeUnixNano + 1e9
	streams[3].Start.Attributes = []*commonpb.KeyValue{str("llm.usage.completion_tokens", "many")}
	streams[4].ChunkRuns[0].TimeDeltas = []int64{0}
	streams[5].ChunkRuns = nil
	streams[6].Start.Attributes = []*commonpb.KeyValue{str("gen_ai.request.stream", "true")} // but all tokens come in one chunk
	streams[6].ChunkRuns[0].TimeDeltas, streams[6].ChunkRuns[0].Tokens = []int64{0}, []uint32{16}
	return streams
}

func TestLatencyReport_CountsEachStreamOnceAndLogsOnceAMinute(t *testing.T) {
	for name, route := range latencyRoutes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := startReporting(t, &route)
				for round := range 4 {
					if round == 3 {
						time.Sleep(61 * time.Second)
					}
					require.Nil(t, r.send(t, flawedStreams(round)...))
				}
				if route.metrics { // without, nothing recognises repeated streams
					require.Nil(t, r.send(t, flawedStreams(0)...))
				}
				require.Equal(t, map[string]int64{ // negative are a queue, and the gap across the step of the clock
					"clock_anomalies": 4, "values_rejected negative": 2 * 4, "values_rejected longer_than_request": 4, "values_rejected unusable": 4,
				}, r.counted())
				var reasons []string
				for line, n := range r.noticed() {
					require.Equal(t, 2, n, line)
					require.Contains(t, line, "requests of source token_stream have no ")
					require.Contains(t, line, "service:chat")
					level, rest, _ := strings.Cut(line, " ")
					_, rest, _ = strings.Cut(rest, "docs/sources.md#")
					reason, _, _ := strings.Cut(rest, " ")
					reasons = append(reasons, level+" "+reason)
				}
				require.ElementsMatch(t, []string{"info one_token", "info no_token", "warn not_streamed"}, reasons)
				require.NoError(t, r.Shutdown(t.Context()))
			})
		})
	}
}

// A refused request is sent again, and counts then.
func TestLatencyReport_CountsNoRefusedSpans(t *testing.T) {
	for name, route := range latencyRoutes {
		if !route.spans {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := startReporting(t, &route)
			r.sink.failWith(errFull)
			require.NotNil(t, r.send(t, flawedStreams(0)...))
			require.Empty(t, r.counted())
			require.Empty(t, r.noticed())
			r.sink.failWith(nil)
			require.Nil(t, r.send(t, flawedStreams(0)...))
			require.EqualValues(t, 1, r.counted()["clock_anomalies"])
			require.NoError(t, r.Shutdown(t.Context()))
		})
	}
}
