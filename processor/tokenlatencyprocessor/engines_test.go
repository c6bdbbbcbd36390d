// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// judgedEngines are engines of a receiver, each with an open request that has a token.
func judgedEngines(t *testing.T, names ...string) (state func(name string) string) {
	t.Helper()
	cfg := engines.DefaultConfig()
	watch := engines.New(&cfg, liveness.Limits{}, nil, zap.NewNop())
	require.NoError(t, watch.Start(t.Context(), componenttest.NewNopHost(), nil, component.MustNewID("token_tap")))
	t.Cleanup(func() { require.NoError(t, watch.Shutdown(context.Background())) })
	for _, name := range names {
		watch.Find(name).Begin(engines.Now(), 1000, true).Token(engines.Now())
	}
	return func(name string) string { return watch.Find(name).Verdict(engines.Now()).State.String() }
}

// onEngine makes a span that of a request to the engine 10.0.0.1:8000.
func onEngine(span ptrace.Span) {
	span.Attributes().PutStr(names.ServerAddress, "10.0.0.1")
	span.Attributes().PutInt(names.ServerPort, 8000)
}

// Most requests of an engine are slow, by the SLO. Other spans that name it are in between. A client's span names the engine
// as token_tap does, an engine's own span as token_stream does.
func TestEngines_AreSlowByTheSpansThatNameThem(t *testing.T) {
	for vantage, engine := range map[string]string{"client": "10.0.0.1:8000", "engine": "replica-1"} {
		t.Run(engine, func(t *testing.T) {
			const other = "10.0.0.2:8000"
			state := judgedEngines(t, "10.0.0.1:8000", "replica-1", other)
			p, _ := newObserved(t, judging(t, map[string]any{"name": "ttft", "indicator": "time_to_first_token", "threshold": "500ms"}))
			request := func(add func(spans ptrace.SpanSlice) ptrace.Span) func(spans ptrace.SpanSlice) {
				return func(spans ptrace.SpanSlice) {
					span := add(spans)
					onEngine(span)
					span.Attributes().PutStr(names.Vantage, vantage)
				}
			}
			send := func(times int, all ...func(spans ptrace.SpanSlice)) {
				traces, spans := newSpans()
				traces.ResourceSpans().At(0).Resource().Attributes().PutStr(names.ServiceInstanceID, "replica-1")
				for range times {
					for _, add := range all {
						add(spans)
					}
				}
				process(t, p, traces)
			}
			slow := request(func(spans ptrace.SpanSlice) ptrace.Span { return addStream(spans, 700, 800) })
			noModelCall := request(ptrace.SpanSlice.AppendEmpty)
			failed := request(func(spans ptrace.SpanSlice) ptrace.Span {
				span := addStream(spans, 700, 800)
				span.Status().SetCode(ptrace.StatusCodeError)
				return span
			})
			met := request(func(spans ptrace.SpanSlice) ptrace.Span { return addStream(spans, 100, 200) })

			send(3, slow, noModelCall, failed)
			send(2, met)
			require.Equal(t, "slow", state(engine), "3 requests are slow, 2 are not")
			for _, name := range []string{"10.0.0.1:8000", "replica-1", other} {
				if name != engine {
					require.Equal(t, "producing", state(name), name)
				}
			}
			send(2, met)
			require.Equal(t, "producing", state(engine), "3 requests are slow, 4 are not")
		})
	}
}

// A request to which no threshold applies says nothing about the engine's speed, even if it met an SLO about its outcome.
func TestEngines_AreSlowByThresholdsOnly(t *testing.T) {
	state := judgedEngines(t, "10.0.0.1:8000")
	p, _ := newObserved(t, judging(t,
		map[string]any{"name": "tpot", "indicator": "time_per_output_token", "threshold": "50ms"},
		map[string]any{"name": "availability", "indicator": "outcome"},
	))
	traces, spans := newSpans()
	for range 3 {
		onEngine(addStream(spans, 100, 700))
		onEngine(addStream(spans, 100)) // one token has no time per token
		onEngine(addStream(spans, 100))
	}
	process(t, p, traces)
	require.Equal(t, "slow", state("10.0.0.1:8000"))
}
