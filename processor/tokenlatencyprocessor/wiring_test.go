// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

func newObserved(t *testing.T, cfg *Config) (*tokenLatency, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	set := componenttest.NewNopTelemetrySettings()
	set.Logger = zap.New(core)
	p, err := newTokenLatency(set, cfg)
	require.NoError(t, err)
	return p, logs
}

// part returns a batch with spans of a trace.
func part(trace uint64, spans ...byte) ptrace.Traces {
	traces, list := newSpans()
	for _, id := range spans {
		span := addStream(list, 100, 200)
		var traceID pcommon.TraceID
		binary.BigEndian.PutUint64(traceID[8:], trace*0x9e3779b97f4a7c15) // IDs are random
		span.SetTraceID(traceID)
		span.SetSpanID(pcommon.SpanID{id})
	}
	return traces
}

func process(t *testing.T, p *tokenLatency, batches ...ptrace.Traces) {
	t.Helper()
	for _, batch := range batches {
		_, err := p.processTraces(t.Context(), batch)
		require.NoError(t, err)
	}
}

func TestWiring_WarnsOnceOfTracesInPieces(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"join":    func(c *Config) { c.Join = true },
		"roll_up": func(c *Config) { c.RollUp = true },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := annotate.DefaultConfig()
			change(cfg)
			p, logs := newObserved(t, cfg)
			for trace := range uint64(100) {
				process(t, p, part(trace, 1), part(trace, 2))
				if trace < 19 {
					require.Zero(t, logs.Len())
				}
			}
			require.Equal(t, 1, logs.Len())
			require.Contains(t, logs.All()[0].Message, "put groupbytrace in front of token_latency")
		})
	}
}

func TestWiring_IsSilentAboutWholeTraces(t *testing.T) {
	cfg := annotate.DefaultConfig()
	cfg.Join = true
	p, logs := newObserved(t, cfg)
	for trace := range uint64(2000) {
		process(t, p, part(trace, 1, 2, 3))
		switch {
		case trace%20 == 0:
			process(t, p, part(trace, 4)) // a span that groupbytrace did not wait for
		case trace%3 == 0:
			process(t, p, part(trace, 1, 2, 3)) // a batch that is sent again
		}
	}
	require.Zero(t, logs.Len())
}

func TestWiring_IsSilentAboutPiecesWithoutJoin(t *testing.T) {
	p, logs := newObserved(t, annotate.DefaultConfig())
	for trace := range uint64(100) {
		process(t, p, part(trace, 1), part(trace, 2))
	}
	require.Zero(t, logs.Len())
}

func slosOf(matches ...map[string]string) *Config {
	cfg := annotate.DefaultConfig()
	for i, match := range matches {
		cfg.SLOs = append(cfg.SLOs, SLOConfig{Name: string(rune('a' + i)), Indicator: "time_to_first_token", Threshold: "1s", Match: match})
	}
	return cfg
}

// docs/definitions.md says how to leave out requests that their clients cancelled.
func TestSLO_WithoutCancelledRequests(t *testing.T) {
	cfg := slosOf(nil, nil)
	cfg.SLOs[1].MatchRegexp = map[string]string{"tokenpulse.outcome": "success|error|incomplete"}
	p, _ := newObserved(t, cfg)
	for outcome, verdicts := range map[string][]any{"success": {"a", "b"}, "cancelled": {"a"}, "error": {"a", "b"}} {
		traces, spans := newSpans()
		span := addStream(spans, 500)
		span.Attributes().PutStr(names.Outcome, outcome)
		process(t, p, traces)
		require.Equal(t, outcome, span.Attributes().AsRaw()[names.Outcome])
		require.Equal(t, verdicts, span.Attributes().AsRaw()["tokenpulse.slo.met"], outcome)
	}
}

// The fake clock of a bubble lets the 15 minutes pass at once.
func TestWiring_WarnsOnceOfAnSLOThatNeverApplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		misspelt := map[string]any{"name": "misspelt", "indicator": "time_to_first_token", "threshold": "1s", "match": map[string]any{names.GenAIRequestModel: "none"}}
		every := map[string]any{"name": "every", "indicator": "time_to_first_token", "threshold": "1s"}
		p, logs := newObserved(t, judging(t, misspelt, every))
		for request := range uint64(100) {
			process(t, p, part(request+1, 1))
		}
		time.Sleep(15*time.Minute - time.Nanosecond)
		process(t, p, part(101, 1))
		require.Zero(t, logs.Len(), "before 15 minutes")
		time.Sleep(time.Nanosecond)
		process(t, p, part(102, 1), part(103, 1))
		require.Equal(t, 1, logs.Len())
		require.Equal(t, []any{"misspelt"}, logs.All()[0].ContextMap()["slos"])
	})
}
