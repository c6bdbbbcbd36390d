// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

// Package clients tests what client libraries send: their recorded spans and, with the build tag
// clients, the libraries themselves.
package clients

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// library is a client library, and the properties of the spans that it sends.
type library struct {
	name   string // its package
	script string // in the folder clients
	source string // the reader that must claim its model calls
	// modelCall matches the span names of model calls. Other spans, such as those of
	// agents and steps, repeat the numbers of a model call.
	modelCall *regexp.Regexp
	// first is the frame that the library takes for the first token. Without an entry,
	// the library does not report a first token.
	first map[apiName]frameKind
	// sinceHeaders means that the library's clock starts with the answer's headers, not
	// with the request.
	sinceHeaders bool
	// timesWhole means that the library also reports a first token for an answer that
	// was not streamed, without marking the span as such.
	timesWhole bool
	// countsTokens means that the library counts tokens if the server reports no usage.
	countsTokens bool
	// reportsMeanGap means that the library reports the mean gap between frames.
	reportsMeanGap bool

	// Calls for which the library sends no span, no first token, or no usage.
	noSpan, noFirst, noUsage []string
}

var libraries = []library{
	{
		name: "ai", script: "vercel_ai", source: "vercel_ai",
		modelCall: regexp.MustCompile(`^ai\.(streamText\.doStream|generateText\.doGenerate)$`),
		first:     map[apiName]frameKind{chatAPI: contentFrame, responsesAPI: roleFrame},
		noSpan:    []string{"aborted"}, // it does not end the span of an aborted stream
	},
	{
		name: "@langfuse/openai", script: "langfuse", source: "langfuse",
		modelCall: regexp.MustCompile(`^OpenAI\.(chat|responses)$`),
		first:     map[apiName]frameKind{chatAPI: roleFrame, responsesAPI: roleFrame},
	},
	{
		name: "openlit", script: "openlit", source: "openlit",
		modelCall:      regexp.MustCompile(`^chat `),
		first:          map[apiName]frameKind{chatAPI: roleFrame, responsesAPI: roleFrame},
		sinceHeaders:   true,
		countsTokens:   true,
		reportsMeanGap: true,
	},
	{
		name: "@mastra/otel-exporter", script: "mastra", source: "mastra",
		modelCall:  regexp.MustCompile(`^chat `),
		first:      map[apiName]frameKind{chatAPI: contentFrame, responsesAPI: contentFrame},
		timesWhole: true,
		noFirst:    []string{"aborted"},
	},
	{
		name: "@arizeai/openinference-instrumentation-openai", script: "openinference", source: "openinference",
		modelCall: regexp.MustCompile(`^OpenAI (Chat Completions|Responses)$`),
		noUsage:   []string{"warmup", "1", "2", "held"}, // all streams of the chat API
	},
	{
		name: "@opentelemetry/instrumentation-openai", script: "otel", source: "semconv",
		modelCall: regexp.MustCompile(`^chat `),
	},
}

// modelPrefix is the prefix of the model names that the clients request. The name of
// the call follows.
const modelPrefix = "mock-gpt-"

// The spans of real client libraries get numbers for their model calls only, and only
// from times that the library could measure.
func TestClients(t *testing.T) {
	for _, l := range libraries {
		t.Run(l.script, func(t *testing.T) {
			r := l.run(t)
			require.Len(t, r.requests, 12, "the calls of clients/calls.mjs")
			calls := map[string]seen{}
			for id, span := range r.derived {
				if !l.modelCall.MatchString(span.Name()) {
					require.Equal(t, r.sent[id].Attributes().AsRaw(), span.Attributes().AsRaw(),
						"%s is not a model call", span.Name())
					continue
				}
				model := otlpfile.Text(t, span.Attributes(), "gen_ai.request.model")
				require.Contains(t, r.requests, model)
				call := strings.TrimPrefix(model, modelPrefix)
				require.NotContains(t, calls, call, "two spans of one call")
				calls[call] = seen{l, call, r.requests[model], r.sent[id], span}
			}
			for model := range r.requests {
				call := strings.TrimPrefix(model, modelPrefix)
				_, found := calls[call]
				require.NotEqual(t, slices.Contains(l.noSpan, call), found, "a span of the call %s", call)
			}
			require.Len(t, calls, r.counted, "requests counted at /metrics")
			for call, s := range calls {
				t.Run(call, s.require)
			}
			l.requireFirstTokens(t, calls)
		})
	}
}

// ran holds the results of running a library.
type ran struct {
	requests map[string]served // by model
	sent     map[pcommon.SpanID]ptrace.Span
	derived  map[pcommon.SpanID]ptrace.Span // the same spans after token_latency
	counted  int                            // requests at /metrics
}

// run lets the library make its calls and send its spans to a Collector.
func (l library) run(t *testing.T) ran {
	t.Helper()
	folder, files := clientsFolder(t), t.TempDir()
	require.DirExists(t, filepath.Join(folder, "node_modules"), "the libraries are not installed; run: make suite-clients")
	sent, derived := filepath.Join(files, "sent.jsonl"), filepath.Join(files, "derived.jsonl")
	server, otlp := startModelServer(t), collector.FreeAddress(t)
	for name, value := range map[string]string{
		"SPANS_FILE":                  derived,
		"SENT_SPANS_FILE":             sent,
		"OTLP_HTTP_ENDPOINT":          otlp,
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + otlp,
		"OPENAI_BASE_URL":             server.url,
		"OPENAI_API_KEY":              "none",
		"MODEL_PREFIX":                modelPrefix,
		"MASTRA_TELEMETRY_DISABLED":   "1",
	} {
		collector.Setenv(t, name, value)
	}
	c := collector.Start(t, filepath.Join(folder, "collector.yaml"))
	collector.Run(t, testenv.Program(t, "node"), filepath.Join(folder, l.script+".mjs"))
	r := ran{requests: server.stop(t), counted: exposition.RequestCount(exposition.Scrape(t, c))}
	c.Stop(t)
	r.sent, r.derived = byID(otlpfile.ReadSpans(t, sent)), byID(otlpfile.ReadSpans(t, derived))
	require.Len(t, r.derived, len(r.sent))
	return r
}

func clientsFolder(t *testing.T) string {
	t.Helper()
	return filepath.Join(testenv.Root(t), "e2e", "clients")
}

func byID(spans []ptrace.Span) map[pcommon.SpanID]ptrace.Span {
	all := map[pcommon.SpanID]ptrace.Span{}
	for _, span := range spans {
		all[span.SpanID()] = span
	}
	return all
}
