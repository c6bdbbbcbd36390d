//go:build clients

package e2e

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// library is a client library, and what is known of the spans it sends.
type library struct {
	name   string // its package
	script string // in the folder clients
	source string // the reader that is to claim its model calls
	// modelCall matches the names of the spans of model calls. All others are of
	// agents, steps and the like, which repeat what a model call says.
	modelCall *regexp.Regexp
	// first is the frame that the library takes for the first token. Where it is
	// absent, the library does not say when the first token came.
	first map[apiName]frameKind
	// sinceHeaders tells that the library's clock starts not with the request but
	// with the answer's headers.
	sinceHeaders bool
	// timesWhole tells that the library says a first token also for an answer that
	// came whole, and nothing on the span that it came whole.
	timesWhole bool
	// countsTokens tells that the library counts where the server does not say.
	countsTokens bool
	// saysMeanGap tells that the library says the mean gap between frames.
	saysMeanGap bool

	// Calls that the library says less about than about others.
	noSpan, noFirst, noUsage []string
}

var libraries = []library{
	{
		name: "ai", script: "vercel_ai", source: "vercel_ai",
		modelCall: regexp.MustCompile(`^ai\.(streamText\.doStream|generateText\.doGenerate)$`),
		first:     map[apiName]frameKind{chatAPI: contentFrame, responsesAPI: roleFrame},
		noSpan:    []string{"aborted"}, // it never ends the span of an aborted stream
	},
	{
		name: "@langfuse/openai", script: "langfuse", source: "langfuse",
		modelCall: regexp.MustCompile(`^OpenAI\.(chat|responses)$`),
		first:     map[apiName]frameKind{chatAPI: roleFrame, responsesAPI: roleFrame},
	},
	{
		name: "openlit", script: "openlit", source: "openlit",
		modelCall:    regexp.MustCompile(`^chat `),
		first:        map[apiName]frameKind{chatAPI: roleFrame, responsesAPI: roleFrame},
		sinceHeaders: true,
		countsTokens: true,
		saysMeanGap:  true,
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

// modelPrefix is what the models that the clients ask for begin with; the name of
// the call follows.
const modelPrefix = "mock-gpt-"

// What real client libraries send is read as what it is: their model calls and
// nothing else, with the times that they could see and no others.
func TestClients(t *testing.T) {
	var table resultTable
	for _, l := range libraries {
		t.Run(l.script, func(t *testing.T) {
			r := l.run(t)
			require.Len(t, r.requests, 12, "the calls of clients/calls.mjs")
			calls := map[string]seen{}
			for id, span := range r.derived {
				if !l.modelCall.MatchString(span.Name()) {
					require.Equal(t, r.sent[id].Attributes().AsRaw(), span.Attributes().AsRaw(),
						"%s is no model call", span.Name())
					continue
				}
				model := text(t, span.Attributes(), "gen_ai.request.model")
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
			require.InDelta(t, len(calls), r.counted, 0, "requests counted at /metrics")
			for call, s := range calls {
				t.Run(call, s.require)
			}
			l.requireFirstTokens(t, calls)
			table.add(t, l, r.requests, calls)
		})
	}
	table.require(t)
}

// ran is what came of running a library.
type ran struct {
	requests map[string]served // what the server answered, by model
	sent     map[pcommon.SpanID]ptrace.Span
	derived  map[pcommon.SpanID]ptrace.Span // the same spans after token_latency
	counted  float64                        // requests at /metrics
}

// run has the library make its calls and send its spans to a Collector.
func (l library) run(t *testing.T) ran {
	t.Helper()
	folder, files := clientsFolder(t), t.TempDir()
	require.DirExists(t, filepath.Join(folder, "node_modules"), "install the libraries first: make test-clients")
	sent, derived := filepath.Join(files, "sent.jsonl"), filepath.Join(files, "derived.jsonl")
	server, otlp := startModelServer(t), freeAddress(t)
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
		t.Setenv(name, value)
	}
	c := startCollector(t, filepath.Join(folder, "collector.yaml"))
	run(t, testenv.Program(t, "node"), filepath.Join(folder, l.script+".mjs"))
	r := ran{requests: server.stop(t)}
	for _, metric := range scrape(t, c)["tokenpulse_requests_total"].GetMetric() {
		r.counted += metric.GetCounter().GetValue()
	}
	c.stop(t)
	r.sent, r.derived = byID(readSpans(t, sent)), byID(readSpans(t, derived))
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
