package source

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// generalReaders are those at the end of the table that take what is left.
const generalReaders = 2

// claimants returns the readers that claim a span, whatever their order, and
// whether one that takes what is left does.
func claimants(scope string, span ptrace.Span) (particular []string, general bool) {
	c, seen := look(scope, span)
	for i, r := range readers {
		if seen>>i&1 == 0 || r.claims != nil && !r.claims(c) {
			continue
		}
		if i >= len(readers)-generalReaders {
			general = true
		} else {
			particular = append(particular, r.name)
		}
	}
	return particular, general
}

// eachSpan calls f for every span, and for the name of its scope.
func eachSpan(traces ptrace.Traces, f func(scope string, span ptrace.Span)) {
	for _, resourceSpans := range traces.ResourceSpans().All() {
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			for _, span := range scopeSpans.Spans().All() {
				f(scopeSpans.Scope().Name(), span)
			}
		}
	}
}

// Whose span it is must not depend on the order of the readers, or adding one
// takes spans from others.
func TestNoTwoReadersClaimASpan(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join(testenv.Root(t), "processor", "tokenlatencyprocessor", "testdata", "*", "input.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	claimed := map[string]bool{}
	for _, file := range cases {
		traces, err := golden.ReadTraces(file)
		require.NoError(t, err)
		eachSpan(traces, func(scope string, span ptrace.Span) {
			particular, _ := claimants(scope, span)
			require.LessOrEqual(t, len(particular), 1, "%s: span %q is claimed by %v", file, span.Name(), particular)
			if o, _ := new(Observer).Observe(scope, span); o != nil {
				claimed[Names()[o.Reader]] = true
			}
		})
	}
	for _, name := range Names() {
		require.True(t, claimed[name], "no golden case has a span of %s", name)
	}
}

func TestForeignSpansHaveNoClaimant(t *testing.T) {
	for name, span := range foreignSpans(t) {
		particular, general := claimants("", span)
		require.Empty(t, particular, name)
		require.False(t, general, name)
	}
}

// recording is what a running library posted.
type recording struct {
	Requests []struct {
		Path string
		Body json.RawMessage
	}
}

func TestRecordings(t *testing.T) {
	for file, expected := range map[string][]string{
		"langfuse-openai.json":      {"langfuse", "langfuse"}, // the same span, posted twice
		"openinference-openai.json": {"openinference"},
		"openlit.json":              {"openlit"},
		"otel-openai-sdk6.json":     {"semconv"},
		"py-traceloop-openai.json":  {"openllmetry", "openllmetry"},
		"vercel-ai6.json":           {"vercel_ai", ""}, // the call, and the function around it
	} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(testenv.Shared(t, "captures/"+file))
			require.NoError(t, err)
			var recorded recording
			require.NoError(t, json.Unmarshal(text, &recorded))
			var sources []string
			for _, request := range recorded.Requests {
				if !strings.HasSuffix(request.Path, "/v1/traces") {
					continue
				}
				traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(request.Body)
				require.NoError(t, err)
				eachSpan(traces, func(scope string, span ptrace.Span) {
					particular, _ := claimants(scope, span)
					require.LessOrEqual(t, len(particular), 1, "span %q is claimed by %v", span.Name(), particular)
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
			require.Equal(t, expected, sources)
		})
	}
}
