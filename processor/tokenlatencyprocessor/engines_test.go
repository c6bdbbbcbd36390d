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

// Most requests of an engine are slow, by the SLO. Other spans that name it are in between.
func TestEngines_AreSlowByTheSpansThatNameThem(t *testing.T) {
	state := judgedEngines(t, "10.0.0.1:8000", "replica-1", "10.0.0.2:8000")
	p, _ := newObserved(t, judging(t, map[string]any{"name": "ttft", "indicator": "time_to_first_token", "threshold": "500ms"}))
	traces, spans := newSpans()
	traces.ResourceSpans().At(0).Resource().Attributes().PutStr(names.ServiceInstanceID, "replica-1")
	for range 3 {
		onEngine(addStream(spans, 700, 800))
		onEngine(spans.AppendEmpty()) // no request to a model
		failed := addStream(spans, 700, 800)
		failed.Status().SetCode(ptrace.StatusCodeError)
		onEngine(failed)
	}
	const met = 2
	for range met {
		onEngine(addStream(spans, 100, 200))
	}
	process(t, p, traces)
	require.Equal(t, "slow", state("10.0.0.1:8000"), "3 requests are slow, 2 are not")
	require.Equal(t, "slow", state("replica-1"))
	require.Equal(t, "producing", state("10.0.0.2:8000"))

	traces, spans = newSpans()
	for range met {
		onEngine(addStream(spans, 100, 200))
	}
	process(t, p, traces)
	require.Equal(t, "producing", state("10.0.0.1:8000"), "3 requests are slow, 4 are not")
	require.Equal(t, "slow", state("replica-1"), "the last batch does not name it")
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
