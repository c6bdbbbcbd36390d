// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// eventsOf returns the events of a span: milliseconds since its start, name, and for a stall its duration in
// seconds and the tokens before it.
func eventsOf(span ptrace.Span) (all []string) {
	for _, event := range span.Events().All() {
		text := fmt.Sprintf("%d %s", (int64(event.Timestamp())-int64(span.StartTimestamp()))/1e6, strings.TrimPrefix(event.Name(), "tokenpulse."))
		if duration, ok := event.Attributes().Get("tokenpulse.stall.duration"); ok {
			index, _ := event.Attributes().Get("tokenpulse.token.index")
			text += fmt.Sprintf(" %gs after %d", duration.Double(), index.Int())
		}
		all = append(all, text)
	}
	return all
}

// Each stream starts at 0 and ends after a second. Gaps over 60 ms are stalls.
func TestEvents_SayWhatHappenedWhen(t *testing.T) {
	outcome := func(outcome string) func(pcommon.Map) {
		return func(attributes pcommon.Map) { attributes.PutStr(names.Outcome, outcome) }
	}
	for name, c := range map[string]struct {
		timeline string
		change   func(pcommon.Map)
		expected []string
	}{
		"no stall":         {"100 120 180", nil, []string{"100 first_token", "180 last_token"}},
		"one token":        {"100", nil, []string{"100 first_token", "100 last_token"}},
		"no token":         {"", outcome("error"), nil},
		"stalls":           {"100 120 300 310x2 500 501", nil, []string{"100 first_token", "120 stall 0.18s after 2", "310 stall 0.19s after 5", "501 last_token"}},
		"chunks of two":    {"100 120x2 300x2 500x2", nil, []string{"100 first_token", "120 stall 0.18s after 3", "300 stall 0.2s after 5", "500 last_token"}},
		"after many":       {"100x7 200x3", nil, []string{"100 first_token", "100 stall 0.1s after 7", "200 last_token"}},
		"client gave up":   {"100 120", outcome("cancelled"), []string{"100 first_token", "120 stall 0.88s after 2", "120 last_token"}},
		"clock steps back": {"100 300 200 210", nil, []string{"100 first_token", "100 stall 0.2s after 1", "210 last_token"}},
		"before the start": {"-200 -100 10 20", nil, []string{"20 last_token"}},
		"after the end":    {"100 120 1300", nil, []string{"100 first_token"}}, // no gap is longer than the request
		"start unseen": {"100 120 300", func(attributes pcommon.Map) {
			attributes.PutBool(names.StartUnseen, true)
		}, []string{"120 stall 0.18s after 2", "300 last_token"}},
		// The 17th stall is the shortest.
		"17 stalls": {
			"0 62 124 186 248 310 372 434 496 558 620 682 744 806 868 930 992 1053", func(attributes pcommon.Map) { attributes.PutStr("end", "late") },
			[]string{
				"0 first_token", "0 stall 0.062s after 1", "62 stall 0.062s after 2", "124 stall 0.062s after 3", "186 stall 0.062s after 4", "248 stall 0.062s after 5",
				"310 stall 0.062s after 6", "372 stall 0.062s after 7", "434 stall 0.062s after 8", "496 stall 0.062s after 9", "558 stall 0.062s after 10", "620 stall 0.062s after 11",
				"682 stall 0.062s after 12", "744 stall 0.062s after 13", "806 stall 0.062s after 14", "868 stall 0.062s after 15", "930 stall 0.062s after 16", "1053 last_token",
			},
		},
		// The first of 20 stalls are the shortest: 61, 62, 63 and 64 ms.
		"20 stalls": {
			"0 61 123 186 250 315 381 448 516 585 655 726 798 871 945 1020 1096 1173 1251 1330 1410", func(attributes pcommon.Map) { attributes.PutStr("end", "late") },
			[]string{
				"0 first_token", "250 stall 0.065s after 5", "315 stall 0.066s after 6", "381 stall 0.067s after 7", "448 stall 0.068s after 8", "516 stall 0.069s after 9",
				"585 stall 0.07s after 10", "655 stall 0.071s after 11", "726 stall 0.072s after 12", "798 stall 0.073s after 13", "871 stall 0.074s after 14", "945 stall 0.075s after 15",
				"1020 stall 0.076s after 16", "1096 stall 0.077s after 17", "1173 stall 0.078s after 18", "1251 stall 0.079s after 19", "1330 stall 0.08s after 20", "1410 last_token",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := load(t, map[string]any{"events": true, "stall_threshold": "60ms", "timeline": "keep"})
			require.NoError(t, err)
			traces, spans := newSpans()
			span := addStream(spans)
			span.Attributes().PutStr(names.Timeline, c.timeline)
			packTimeline(t, span.Attributes())
			if c.change != nil {
				c.change(span.Attributes())
			}
			if _, late := span.Attributes().Get("end"); late {
				span.SetEndTimestamp(span.StartTimestamp() + 2e9)
			}
			span.Events().AppendEmpty().SetName(names.StallEvent) // of an earlier processor
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
			for range 2 { // a second processor replaces the events of the first one
				require.NoError(t, p.ConsumeTraces(t.Context(), traces))
				annotated := onlySpan(t, sink.AllTraces()[0])
				require.Equal(t, c.expected, eventsOf(annotated))
				sink.Reset()
			}
		})
	}
}

// By default, a span keeps its events as they are. Those under our names are untrusted like attributes.
func TestEvents_AreOffByDefault(t *testing.T) {
	for trust, expected := range map[bool][]string{true: {"0 stall", "0 retry"}, false: {"0 retry"}} {
		cfg, err := load(t, map[string]any{"trust_annotations": trust})
		require.NoError(t, err)
		traces, spans := newSpans()
		span := addStream(spans, 100, 900)
		for _, name := range []string{names.StallEvent, "retry"} {
			event := span.Events().AppendEmpty()
			event.SetName(name)
			event.SetTimestamp(span.StartTimestamp())
		}
		p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		require.Equal(t, expected, eventsOf(onlySpan(t, sink.AllTraces()[0])))
	}
}

// A span without a timeline has the moments that its instrumentation reports.
func TestEvents_OfASpanWithoutTimeline(t *testing.T) {
	cfg, err := load(t, map[string]any{"events": true})
	require.NoError(t, err)
	traces, spans := newSpans()
	span := addStream(spans)
	span.Attributes().Clear()
	span.Attributes().PutStr(names.GenAIOperationName, "chat")
	span.Attributes().PutBool(names.GenAIRequestStream, true)
	span.Attributes().PutDouble(names.GenAITimeToFirstChunk, 0.25)
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	require.Equal(t, []string{"250 first_token"}, eventsOf(onlySpan(t, sink.AllTraces()[0])))
}
