// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/golden"
)

// generalReaders counts the readers at the end of the table. They read spans that no
// other reader claims.
const generalReaders = 2

// claimants returns the names of the specific readers that claim a span, and whether
// a general reader claims it too. The order of readers has no influence, except that a
// timeline precedes what else a span reports.
func claimants(scope string, span ptrace.Span) (specific []string, general bool) {
	c, seen := look(scope, span)
	withTimeline := false
	for i, r := range readers {
		if seen>>i&1 == 0 || r.claims != nil && !r.claims(c) {
			continue
		}
		if withTimeline = withTimeline || r.read != nil; withTimeline && r.read == nil {
			continue
		}
		if i >= len(readers)-generalReaders {
			general = true
		} else {
			specific = append(specific, r.name)
		}
	}
	return specific, general
}

// eachSpan calls f with every span and the name of its scope.
func eachSpan(traces ptrace.Traces, f func(scope string, span ptrace.Span)) {
	for _, resourceSpans := range traces.ResourceSpans().All() {
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			for _, span := range scopeSpans.Spans().All() {
				f(scopeSpans.Scope().Name(), span)
			}
		}
	}
}

// If two readers claimed a span, their order would decide, and a new reader could take
// spans from another.
func TestReaders_AtMostOneClaimsASpan(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join(testenv.Root(t), "processor", "tokenlatencyprocessor", "testdata", "*", "input.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	claimed := map[string]bool{}
	for _, file := range cases {
		traces := golden.ReadTraces(t, file)
		eachSpan(traces, func(scope string, span ptrace.Span) {
			specific, _ := claimants(scope, span)
			require.LessOrEqual(t, len(specific), 1, "%s: span %q is claimed by %v", file, span.Name(), specific)
			if o, _ := new(Observer).Observe(scope, span); o != nil {
				claimed[Names()[o.Reader]] = true
			}
		})
	}
	for _, name := range Names() {
		require.True(t, claimed[name], "no golden case has a span of %s", name)
	}
}

func TestReaders_NoneClaimsAForeignSpan(t *testing.T) {
	for name, span := range foreignSpans(t) {
		specific, general := claimants("", span)
		require.Empty(t, specific, name)
		require.False(t, general, name)
	}
}

func TestObserve_CapturesOfRealLibraries(t *testing.T) {
	expected := map[string][]string{
		"langfuse-openai":      {"langfuse", "langfuse"}, // the same span, posted twice
		"openinference-openai": {"openinference"},
		"openlit":              {"openlit"},
		"otel-openai-sdk6":     {"semconv"},
		"py-traceloop-openai":  {"openllmetry", "openllmetry"},
		"vercel-ai6":           {"vercel_ai", ""}, // the model call, and the span around it
	}
	require.Len(t, expected, len(testenv.CaptureNames(t)))
	for name, want := range expected {
		t.Run(name, func(t *testing.T) {
			var sources []string
			for _, post := range testenv.ReadCapture(t, name).Posts {
				traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(post.Body)
				require.NoError(t, err)
				eachSpan(traces, func(scope string, span ptrace.Span) {
					specific, _ := claimants(scope, span)
					require.LessOrEqual(t, len(specific), 1, "span %q is claimed by %v", span.Name(), specific)
					o, err := new(Observer).Observe(scope, span)
					require.NoError(t, err)
					source := ""
					if o != nil {
						source = Names()[o.Reader]
						require.Zero(t, o.Unusable)
					}
					sources = append(sources, source)
				})
			}
			require.Equal(t, want, sources)
		})
	}
}
