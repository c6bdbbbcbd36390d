// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// requireReasons fails unless the request has each indicator or exactly one reason for its absence.
// It returns the entries.
func requireReasons(t *testing.T, attributes pcommon.Map) (entries []string) {
	t.Helper()
	if _, ok := attributes.Get(names.Unmeasured); ok {
		entries = listOn(attributes, names.Unmeasured)
		require.NotEmpty(t, entries)
	}
	reasons := map[string][]string{}
	for _, entry := range entries {
		indicator, reason, ok := strings.Cut(entry, "=")
		require.True(t, ok, entry)
		require.Contains(t, []string{
			"implausible", "no_token", "ambiguous_unit", "not_streamed", "not_read", "not_reported", "dropped_events", "buffered", "one_token",
		}, reason)
		reasons[indicator] = append(reasons[indicator], reason)
	}
	known := 0
	for _, indicator := range []string{"time_to_first_token", "time_per_output_token"} {
		if has(attributes, names.Prefix+indicator) {
			known++
			require.Empty(t, reasons[indicator], indicator)
		} else {
			require.Len(t, reasons[indicator], 1, "%s of %v", indicator, attributes.AsRaw())
		}
	}
	require.Len(t, entries, 2-known)
	return entries
}

// Every model call of every source has each indicator or one reason, however its span is distorted.
func TestProcessor_EveryRequestHasIndicatorsOrOneReason(t *testing.T) {
	words := readVocabulary(t)
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
	random := rand.New(rand.NewPCG(13, 2))
	seen := map[string]int{}
	for range 10_000 {
		var steps []byte
		for range random.IntN(6) {
			steps = append(steps, step(byte(random.Uint32()), uint16(random.Uint32()), random.Uint64()>>random.IntN(64))...)
		}
		span := words.spans[random.IntN(len(words.spans))]
		traces := ptrace.NewTraces()
		scope := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
		distorted := scopedSpan{scope.Spans().AppendEmpty(), span.scope}
		span.CopyTo(distorted.Span)
		distorted.Attributes().Remove(names.Source) // else the span passes as derived before
		words.distort(&distorted, steps)
		distorted.Attributes().Remove(names.Source)
		scope.Scope().SetName(distorted.scope)
		sink.Reset()
		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		own := spansOf(sink.AllTraces()[0])[0].Attributes()
		if !attributes.IsAnnotated(spansOf(sink.AllTraces()[0])[0]) {
			continue
		}
		for _, entry := range requireReasons(t, own) {
			seen[entry]++
		}
	}
	for _, entry := range []string{
		"time_to_first_token=implausible", "time_to_first_token=no_token", "time_to_first_token=not_streamed",
		"time_to_first_token=not_reported", "time_to_first_token=dropped_events",
		"time_per_output_token=buffered", "time_per_output_token=one_token",
	} {
		require.Positive(t, seen[entry], "%s; seen: %v", entry, seen)
	}
}
