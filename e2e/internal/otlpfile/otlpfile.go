// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpfile reads spans that a Collector has written to a file.
package otlpfile

import (
	"bytes"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// ReadSpans returns the spans of a file.
func ReadSpans(t *testing.T, file string) []ptrace.Span {
	t.Helper()
	var spans []ptrace.Span
	for span := range SpansOfResources(t, file) {
		spans = append(spans, span)
	}
	return spans
}

// SpansOfResources yields the spans that a file exporter wrote, each with the
// attributes of its resource.
func SpansOfResources(t *testing.T, file string) iter.Seq2[ptrace.Span, pcommon.Map] {
	t.Helper()
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	return func(yield func(ptrace.Span, pcommon.Map) bool) {
		for line := range bytes.Lines(written) {
			traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
			require.NoError(t, err)
			for _, resource := range traces.ResourceSpans().All() {
				for _, scope := range resource.ScopeSpans().All() {
					for _, span := range scope.Spans().All() {
						if !yield(span, resource.Resource().Attributes()) {
							return
						}
					}
				}
			}
		}
	}
}

// Text returns the text of an attribute that must exist.
func Text(t *testing.T, attributes pcommon.Map, name string) string {
	t.Helper()
	value, found := attributes.Get(name)
	require.True(t, found, "no attribute %s", name)
	return value.Str()
}

// Milliseconds returns the number of an attribute that must exist.
func Milliseconds(t *testing.T, attributes pcommon.Map, name string) float64 {
	t.Helper()
	value, found := attributes.Get(name)
	require.True(t, found, "no attribute %s", name)
	return value.Double() * 1e3
}

// ChunksOf returns the Unix times in nanoseconds and the channels of a span's timeline.
func ChunksOf(t *testing.T, span ptrace.Span) (times []int64, channels []timeline.Channel) {
	t.Helper()
	stored, ok := span.Attributes().Get(names.Timeline)
	require.True(t, ok)
	walk, err := timeline.Decode(stored.Bytes().AsRaw())
	require.NoError(t, err)
	for walk.Next() {
		times = append(times, int64(span.StartTimestamp())+int64(walk.Offset()))
		channels = append(channels, walk.Channel())
	}
	require.NoError(t, walk.Err())
	return times, channels
}

// HasPrefixIn reports whether text begins with one of the prefixes.
func HasPrefixIn(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

// Lists reports whether a list attribute of a span contains an SLO.
func Lists(span ptrace.Span, attribute, slo string) bool {
	list, ok := span.Attributes().Get(attribute)
	if !ok {
		return false
	}
	for _, listed := range list.Slice().All() {
		if listed.Str() == slo {
			return true
		}
	}
	return false
}

// RequireReadable checks that a span has at most 20 attributes of tokenpulse, besides those of breaches and stalls,
// and no bytes.
func RequireReadable(t *testing.T, span ptrace.Span) {
	t.Helper()
	var ours []string
	for name, value := range span.Attributes().All() {
		require.NotEqual(t, pcommon.ValueTypeBytes, value.Type(), name)
		if HasPrefixIn(name, "tokenpulse.") && !HasPrefixIn(name, "tokenpulse.slo.breached", "tokenpulse.slo.verdict.", "tokenpulse.stall.") {
			ours = append(ours, name)
		}
	}
	require.LessOrEqual(t, len(ours), 20, ours)
}
