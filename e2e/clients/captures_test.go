// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// capturedCall is a model call whose span a library sent, and what token_latency must
// derive from it.
type capturedCall struct {
	span   string // its name
	copies int    // number of times that the library sent it
	source string

	// frame is the kind of frame that the library takes for the first token, empty if
	// it reports none. recorded returns the library's time to that frame.
	frame    string
	recorded func(t *testing.T, span sentSpan) time.Duration
	// sinceHeaders means that the library's clock starts with the answer's headers.
	sinceHeaders bool
	// late means that the library noticed the frame late, as the first request of a
	// new process.
	late bool
	// usage means that the library sent token counts.
	usage bool

	// attributes lists the span's new attributes besides commonAttributes. estimated
	// lists the estimates among them. Both are without prefix.
	attributes []string
	estimated  []string
	// unmeasured is the reason why the call has neither a time to first token nor a time
	// per output token, if it has none.
	unmeasured string
}

// commonAttributes are written on every span of a model call.
var commonAttributes = []string{"source", "vantage", "outcome", "request.duration"}

var (
	// ofFirstToken are the attributes that follow from the time of the first token and
	// usage, without a time of the last token.
	ofFirstToken = []string{
		"request_token_rate", "time_to_first_token", "prefill.duration", "decode.duration", "decode.share",
		"time_per_output_token", "output_token_rate", "estimated",
	}
	// untilTheEnd are those in which the request's end stands for the last token.
	untilTheEnd = []string{
		"prefill.duration", "decode.duration", "decode.share", "time_per_output_token", "output_token_rate",
	}
)

var captures = []struct {
	name  string
	calls []capturedCall
	// others are the spans that are not model calls.
	others []string
}{
	{
		name: "langfuse-openai",
		calls: []capturedCall{{
			span: "OpenAI.chat", copies: 2, source: "langfuse", usage: true,
			frame: "role",
			recorded: func(t *testing.T, span sentSpan) time.Duration {
				quoted := span.text(t, "langfuse.observation.completion_start_time")
				first, err := time.Parse(`"2006-01-02T15:04:05.000Z"`, quoted)
				require.NoError(t, err)
				return span.after(first.UnixNano())
			},
			attributes: slices.Concat(ofFirstToken, []string{"cached_input.share"}),
			estimated:  slices.Concat(untilTheEnd, []string{"time_to_first_token"}),
		}},
	},
	{
		name: "openinference-openai",
		calls: []capturedCall{{
			span: "OpenAI Chat Completions", copies: 1, source: "openinference",
			attributes: []string{"unmeasured"}, unmeasured: "not_reported",
		}},
	},
	{
		name: "openlit",
		calls: []capturedCall{{
			span: "chat mock-gpt", copies: 1, source: "openlit", usage: true,
			frame: "role", sinceHeaders: true,
			recorded: func(t *testing.T, span sentSpan) time.Duration {
				return time.Duration(span.double(t, "gen_ai.server.time_to_first_token") * float64(time.Second))
			},
			attributes: slices.Concat(ofFirstToken, []string{"inter_chunk_latency.mean"}),
			estimated:  slices.Concat(untilTheEnd, []string{"time_to_first_token", "inter_chunk_latency"}),
		}},
	},
	{
		name: "otel-openai-sdk6",
		calls: []capturedCall{{
			span: "chat mock-gpt", copies: 1, source: "semconv", usage: true,
			attributes: []string{"request_token_rate", "unmeasured"}, unmeasured: "not_reported",
		}},
	},
	{
		name: "py-traceloop-openai",
		calls: []capturedCall{
			{
				span: "openai.chat", copies: 1, source: "openllmetry", usage: true,
				frame: "role", late: true,
				recorded: func(_ *testing.T, span sentSpan) time.Duration { return span.after(span.Events[0].Time) },
				attributes: slices.Concat(ofFirstToken, []string{
					"cached_input.share", "chunk.count", "token_count.mismatch", "unmeasured", "inter_token_latency.sketch",
					"inter_token_latency.mean", "inter_token_latency.p50", "inter_token_latency.p95",
					"inter_token_latency.p99", "inter_token_latency.max",
					"inter_chunk_latency.mean", "inter_chunk_latency.p50", "inter_chunk_latency.p95",
					"inter_chunk_latency.p99", "inter_chunk_latency.max",
				}),
				estimated: slices.Concat(untilTheEnd, []string{
					"time_to_first_token", "inter_token_latency", "inter_chunk_latency",
				}),
			},
			{
				span: "openai.response", copies: 1, source: "openllmetry", usage: true,
				attributes: []string{"request_token_rate", "cached_input.share", "unmeasured"}, unmeasured: "not_reported",
			},
		},
	},
	{
		name: "vercel-ai6",
		calls: []capturedCall{{
			span: "ai.streamText.doStream", copies: 1, source: "vercel_ai", usage: true,
			frame: "content", late: true,
			recorded: func(t *testing.T, span sentSpan) time.Duration {
				return time.Duration(span.double(t, "ai.response.msToFirstChunk") * float64(time.Millisecond))
			},
			attributes: slices.Concat(ofFirstToken, []string{"cached_input.share"}),
			estimated:  untilTheEnd,
		}},
		others: []string{"ai.streamText"},
	},
}

// The spans of real libraries pass through the Collector. Model calls come out with
// the times that the library recorded, and these agree with the server's send times.
// No attribute is derived from a time that the library did not record.
func TestCaptures_ModelCallsGetTheRecordedTimes(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range captures {
		names = append(names, c.name)
	}
	require.Equal(t, testenv.CaptureNames(t), names, "the captures in testdata")
	came := sendCaptures(t)
	var table strings.Builder
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			capture := testenv.ReadCapture(t, c.name)
			answer := capture.Served[0] // the first call of each library is the one with a first token
			copies := map[string]int{}
			var others []string
			for _, sent := range spansOf(t, capture) {
				require.NotEmpty(t, came[sent.SpanID], sent.Name)
				span := came[sent.SpanID][0]
				came[sent.SpanID] = came[sent.SpanID][1:]
				i := slices.IndexFunc(c.calls, func(call capturedCall) bool { return call.span == sent.Name })
				if i < 0 {
					require.Equal(t, packed(t, sent.whole), packed(t, span), "%s is not a model call", sent.Name)
					others = append(others, sent.Name)
					continue
				}
				copies[sent.Name]++
				call := capturedSpan{c.calls[i], sent, span}
				call.require(t)
				fmt.Fprintf(&table, "%-20s %s\n", c.name, call.requireFirstToken(t, answer))
			}
			require.Equal(t, c.others, others)
			for _, call := range c.calls {
				require.Equal(t, call.copies, copies[call.span], call.span)
			}
		})
	}
	t.Logf("\n%-20s %-24s %-8s %11s %11s %11s %11s\n%s",
		"capture", "span", "frame", "truth", "recorded", "lag", "derived", table.String())
}

// sendCaptures sends all captures through one Collector, and returns the resulting
// spans by id.
func sendCaptures(t *testing.T) map[string][]ptrace.Span {
	t.Helper()
	spansFile := collector.ExampleEnvironment(t)
	c := collector.Start(t, collector.Example(t, "spans-to-file.yaml"), collector.FullDetail...)
	endpoint := collector.Getenv(t, "OTLP_HTTP_ENDPOINT")
	sent := 0
	for _, capture := range captures {
		posted := testenv.ReadCapture(t, capture.name)
		sent += len(spansOf(t, posted))
		for _, post := range posted.Posts {
			collector.PostSpans(t, endpoint, post.ContentType, post.Body)
		}
	}
	c.Stop(t)
	came := otlpfile.ReadSpans(t, spansFile)
	require.Len(t, came, sent)
	spans := map[string][]ptrace.Span{}
	for _, span := range came {
		id := span.SpanID().String()
		spans[id] = append(spans[id], span)
	}
	return spans
}

// capturedSpan is the span of a model call, before and after the Collector.
type capturedSpan struct {
	capturedCall
	sent sentSpan
	came ptrace.Span
}

func (s capturedSpan) require(t *testing.T) {
	s.requireUntouched(t)
	attributes := s.came.Attributes()
	require.Equal(t, s.source, otlpfile.Text(t, attributes, "tokenpulse.source"))
	require.Equal(t, "client", otlpfile.Text(t, attributes, "tokenpulse.vantage"))
	require.Equal(t, "success", otlpfile.Text(t, attributes, "tokenpulse.outcome"))
	require.InDelta(t, s.sent.after(s.sent.End), s.derived(t, "request.duration"), exact)

	var written []string
	for name := range attributes.All() {
		if name, ours := strings.CutPrefix(name, "tokenpulse."); ours {
			written = append(written, name)
		}
	}
	require.ElementsMatch(t, slices.Concat(commonAttributes, s.attributes), written)
	if s.unmeasured != "" {
		reasons, _ := attributes.Get("tokenpulse.unmeasured")
		require.Equal(t, []any{"time_to_first_token=" + s.unmeasured, "time_per_output_token=" + s.unmeasured}, reasons.Slice().AsRaw())
	}
	var estimated []string
	if list, found := attributes.Get("tokenpulse.estimated"); found {
		for _, name := range list.Slice().All() {
			estimated = append(estimated, name.Str())
		}
	}
	require.ElementsMatch(t, s.estimated, estimated)

	for name, want := range map[string]int64{"gen_ai.usage.input_tokens": 17, "gen_ai.usage.output_tokens": 12} {
		tokens, found := attributes.Get(name)
		require.Equal(t, s.usage, found, name)
		require.True(t, !found || tokens.Type() == pcommon.ValueTypeInt && tokens.Int() == want, name)
	}
}

// requireUntouched checks that the span keeps everything that the library sent.
func (s capturedSpan) requireUntouched(t *testing.T) {
	t.Helper()
	rest := ptrace.NewSpan()
	s.came.CopyTo(rest)
	rest.Attributes().RemoveIf(func(name string, _ pcommon.Value) bool {
		_, sent := s.sent.whole.Attributes().Get(name)
		return !sent
	})
	require.Equal(t, packed(t, s.sent.whole), packed(t, rest))
}

// nearTruth is the tolerance between a library's time and the server's.
const nearTruth = 5 * time.Millisecond

// requireFirstToken compares the derived time to first token with the times of the
// library and the server. It returns them as a table row.
func (s capturedSpan) requireFirstToken(t *testing.T, answer testenv.CapturedAnswer) string {
	t.Helper()
	const line = "%-24s %-8s %11v %11v %11v %11v"
	if s.frame == "" {
		require.NotContains(t, s.came.Attributes().AsRaw(), "gen_ai.response.time_to_first_chunk")
		return fmt.Sprintf(line, s.span, "-", "-", "-", "-", "-")
	}
	start := s.sent.Start
	if s.sinceHeaders {
		start = answer.HeadersSent
	}
	truth := time.Duration(sentAt(t, answer, s.frame) - start)
	recorded := s.recorded(t, s.sent)
	first := s.derived(t, "time_to_first_token")
	lag := recorded - truth

	require.InDelta(t, recorded, first, exact, "the time that the library recorded")
	if s.late {
		require.Greater(t, lag, nearTruth, "the library noticed the frame in time")
	} else {
		require.InDelta(t, truth, first, float64(nearTruth), "the time when the server sent the %s frame", s.frame)
	}
	s.requirePace(t, first)
	return fmt.Sprintf(line, s.span, s.frame, truth, recorded, lag, first)
}

// requirePace checks the attributes that follow from the first token's time. Decoding
// ends with the last frame that the library recorded, or else with the request.
func (s capturedSpan) requirePace(t *testing.T, first time.Duration) {
	t.Helper()
	end := s.sent.after(s.sent.End)
	if frames := s.sent.Events; len(frames) > 0 && s.source == "openllmetry" {
		end = s.sent.after(frames[len(frames)-1].Time)
	}
	require.InDelta(t, first, s.derived(t, "prefill.duration"), exact)
	require.InDelta(t, end-first, s.derived(t, "decode.duration"), exact)
	require.InDelta(t, (end-first)/11, s.derived(t, "time_per_output_token"), exact)
}

// exact is the resolution of derived times, in nanoseconds.
const exact = float64(time.Microsecond)

// derived returns a duration attribute that the Collector added.
func (s capturedSpan) derived(t *testing.T, name string) time.Duration {
	t.Helper()
	return time.Duration(otlpfile.Milliseconds(t, s.came.Attributes(), "tokenpulse."+name) * float64(time.Millisecond))
}

// packed returns a span in OTLP's protobuf encoding.
func packed(t *testing.T, span ptrace.Span) []byte {
	t.Helper()
	alone := ptrace.NewTraces()
	span.CopyTo(alone.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
	bytes, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(alone)
	require.NoError(t, err)
	return bytes
}
