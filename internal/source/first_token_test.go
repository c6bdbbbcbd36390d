// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// The order is a timeline, a relative time, the difference of two absolute times, an event. A time
// outside the request yields to the next one.
func TestFirstToken_MostTrustedPlausibleTimeWins(t *testing.T) {
	absolute := map[string]any{
		names.GenAIOperationName: "chat", "mastra.span.type": "model_inference",
		"mastra.completion_start_time": "2026-11-21T03:54:52.300Z",
	}
	early := []event{{name: "first_token", after: 400 * ms}}
	relative := with(absolute, names.GenAITimeToFirstChunk, 0.2)
	tests := map[string]struct {
		call     call
		expected latency.Measure
	}{
		"relative, absolute and event":           {call{attributes: relative, events: early}, exactly(0.2)},
		"absolute and event":                     {call{attributes: absolute, events: early}, exactly(0.3)},
		"event":                                  {call{attributes: map[string]any{names.GenAIOperationName: "chat"}, events: early}, exactly(0.4)},
		"no time":                                {call{attributes: map[string]any{names.GenAIOperationName: "chat"}}, latency.Measure{}},
		"relative longer than the call":          {call{attributes: with(absolute, names.GenAITimeToFirstChunk, 1.001), events: early}, exactly(0.3)},
		"relative negative":                      {call{attributes: with(absolute, names.GenAITimeToFirstChunk, -0.1), events: early}, exactly(0.3)},
		"absolute before the start":              {call{attributes: with(absolute, "mastra.completion_start_time", "2026-11-21T03:54:51Z"), events: early}, exactly(0.4)},
		"absolute after the end":                 {call{attributes: with(absolute, "mastra.completion_start_time", "2026-11-21T03:54:53.5Z"), events: early}, exactly(0.4)},
		"event before the start":                 {call{attributes: map[string]any{names.GenAIOperationName: "chat"}, events: []event{{name: "first_token", after: -ms}}}, latency.Measure{}},
		"event after the end":                    {call{attributes: map[string]any{names.GenAIOperationName: "chat"}, events: []event{{name: "first_token", after: 1001 * ms}}}, latency.Measure{}},
		"the conventions' name before its alias": {call{attributes: with(relative, "gen_ai.response.time_to_first_token", 0.25)}, exactly(0.2)},
		"a relative time before frames":          {call{attributes: map[string]any{names.GenAIOperationName: "chat", names.GenAITimeToFirstChunk: 0.2}, events: []event{{name: "gen_ai.content.chunk", after: 100 * ms}}}, exactly(0.2)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.expected, test.call.firstToken(t))
		})
	}
	t.Run("timeline before all", func(t *testing.T) {
		var line timeline.Timeline
		line.Append(began+100*int64(ms), 1, timeline.Content)
		timed := call{attributes: with(relative, names.Timeline, line.AppendBinary(nil, began)), events: early}
		require.Equal(t, exactly(0.1), timed.firstToken(t))
	})
}

// A rejected time is counted and does not become a standard attribute.
func TestFirstChunk_OutsideRequestIsRejected(t *testing.T) {
	for name, test := range map[string]struct {
		value  float64
		reason latency.Reason
	}{
		"negative": {-0.1, latency.Negative}, "longer than the request": {1.5, latency.LongerThanRequest},
	} {
		t.Run(name, func(t *testing.T) {
			c := call{attributes: map[string]any{names.GenAIOperationName: "chat", "gen_ai.client.operation.time_to_first_chunk": test.value}}
			o, l := c.latency(t)
			require.False(t, o.Standard[names.TimeToFirstChunk].Known)
			require.False(t, l.Measures[numbers.TimeToFirstToken].Known)
			require.EqualValues(t, 1, o.Rejected[test.reason]+l.Rejected[test.reason])

			beside := call{attributes: with(c.attributes, "gen_ai.client.inference.time_to_first_chunk", 0.3)}
			require.Equal(t, exactly(0.3), beside.firstToken(t), "a plausible time counts, whatever its rank")
		})
		t.Run(name+", beside a timeline", func(t *testing.T) {
			span := tokenStreamSpan()
			span.Attributes().PutDouble("gen_ai.client.operation.time_to_first_chunk", test.value)
			o, err := new(Observer).Observe("", span)
			require.NoError(t, err)
			require.False(t, o.Standard[names.TimeToFirstChunk].Known)
		})
	}
}

// SDKs keep the newest events, so the first one left is not the stream's first.
func TestDroppedEvents_NoFirstToken(t *testing.T) {
	gaps := latency.Distribution{
		latency.Mean: about(0.025), latency.P50: about(0.02), latency.P95: about(0.03), latency.P99: about(0.03), latency.Max: about(0.03),
	}
	for name, c := range map[string]call{
		"OpenLLMetry": {
			attributes: map[string]any{names.GenAIOperationName: "chat", "gen_ai.is_streaming": true},
			events:     []event{{name: openLLMetryFrames[0], after: 500 * ms}, {name: openLLMetryFrames[0], after: 520 * ms}, {name: openLLMetryFrames[0], after: 550 * ms}},
		},
		"LangSmith": {
			attributes: map[string]any{names.GenAIOperationName: "chat", "langsmith.span.kind": "llm"},
			events:     []event{{name: "new_token", after: 500 * ms}, {name: "new_token", after: 520 * ms}, {name: "new_token", after: 550 * ms}},
		},
		"others": {
			attributes: map[string]any{names.GenAIOperationName: "chat"},
			events:     []event{{name: "gen_ai.stream.chunk", after: 500 * ms}, {name: "gen_ai.stream.chunk", after: 520 * ms}, {name: "gen_ai.stream.chunk", after: 550 * ms}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.dropped = 9
			_, l := c.latency(t)
			for _, q := range []numbers.ID{numbers.TimeToFirstToken, numbers.PrefillDuration, numbers.DecodeDuration, numbers.TimePerOutputToken} {
				require.False(t, l.Measures[q].Known, q)
			}
			require.Equal(t, latency.Measure{Value: 3 + 9, Known: true}, l.Measures[numbers.ChunkCount])
			for statistic, m := range l.Gaps(numbers.InterTokenMean) { // the gaps are correct, but cover only part of the stream
				require.InEpsilon(t, gaps[statistic].Value, m.Value, 0.01)
				require.True(t, m.Known && m.Estimated)
			}
			require.InDelta(t, 0.025, l.Measures[numbers.InterTokenMean].Value, 1e-12)

			c.dropped = 0
			_, l = c.latency(t)
			require.Equal(t, about(0.5), l.Measures[numbers.TimeToFirstToken])
		})
	}
	t.Run("first-token event, of which an earlier one may have been dropped", func(t *testing.T) {
		named := call{attributes: map[string]any{names.GenAIOperationName: "chat"}, events: []event{{name: "first_token", after: 500 * ms}}, dropped: 9}
		require.Zero(t, named.firstToken(t))
		named.dropped = 0
		require.Equal(t, exactly(0.5), named.firstToken(t))
	})
}

// Frames are counted and timed, but the reported number of tokens wins, and every number derived
// from frames is an estimate.
func TestFrames_AreNotTokens(t *testing.T) {
	c := call{attributes: map[string]any{names.GenAIOperationName: "chat", names.GenAIOutputTokens: 3}}
	for _, after := range []time.Duration{100, 200, 220, 260, 300} { // role, three tokens, finish
		c.events = append(c.events, event{name: openLLMetryFrames[0], after: after * ms})
	}
	o, l := c.latency(t)
	require.True(t, o.Request.Frames)
	require.Equal(t, latency.Measure{Value: 5, Known: true}, l.Measures[numbers.ChunkCount])
	require.EqualValues(t, 3-5, l.Count(numbers.TokenCountMismatch))
	require.Equal(t, about((0.3-0.1)/(3-1)), l.Measures[numbers.TimePerOutputToken])
	require.Equal(t, exactly(3/1.0), l.Measures[numbers.RequestTokenRate])
	require.Equal(t, about((0.3-0.1)/4), l.Measures[numbers.InterTokenMean])
	require.False(t, l.Measures[numbers.TimeToFirstOutputToken].Known, "a frame has no channel")

	delete(c.attributes, names.GenAIOutputTokens)
	_, l = c.latency(t)
	require.Equal(t, about((0.3-0.1)/(5-1)), l.Measures[numbers.TimePerOutputToken])
	require.Equal(t, about(5/1.0), l.Measures[numbers.RequestTokenRate])
	require.False(t, l.Measures[numbers.TokenCount].Known, "frames do not count as tokens")
}

// Some instrumentations take the first chunk from a frame without a token, others from the first
// content.
func TestFirstChunk_IsEstimatedIfFrame(t *testing.T) {
	chat := map[string]any{names.GenAIOperationName: "chat"}
	langfuse := map[string]any{
		"langfuse.observation.type": "generation", "langfuse.observation.completion_start_time": `"2026-11-21T03:54:52.2Z"`,
	}
	openLIT := map[string]any{names.GenAIOperationName: "chat", "gen_ai.request.is_stream": true, "gen_ai.server.time_to_first_token": 0.2}
	for name, c := range map[string]call{
		"OpenLLMetry":   {attributes: chat, events: []event{{name: openLLMetryFrames[0], after: 200 * ms}}},
		"OpenInference": {attributes: map[string]any{"openinference.span.kind": "LLM"}, events: []event{{name: "First Token Stream Event", after: 200 * ms}}},
		"Langfuse":      {attributes: langfuse},
		"LangSmith":     {attributes: with(chat, "langsmith.span.kind", "llm"), events: []event{{name: "new_token", after: 200 * ms}}},
		"OpenLIT":       {attributes: openLIT},
	} {
		t.Run("a frame: "+name, func(t *testing.T) { require.Equal(t, about(0.2), c.firstToken(t)) })
	}
	for name, c := range map[string]call{
		"Vercel AI SDK": {scope: "ai", attributes: map[string]any{"ai.operationId": "ai.streamText.doStream", "ai.response.msToFirstChunk": 200.0}},
		"Mastra":        {attributes: map[string]any{"mastra.span.type": "model_inference", "mastra.completion_start_time": "2026-11-21T03:54:52.2Z"}},
		"conventions":   {attributes: with(chat, names.GenAITimeToFirstChunk, 0.2)},
	} {
		t.Run("content: "+name, func(t *testing.T) { require.Equal(t, exactly(0.2), c.firstToken(t)) })
	}
}

// The time of an event stamped when the span ends is ignored; its attributes are read.
func TestFirstToken_IgnoresEventStampedAtSpanEnd(t *testing.T) {
	tests := map[string]struct {
		call     call
		expected latency.Measure
	}{
		"Envoy AI Gateway": {
			call{scope: "envoyproxy/ai-gateway", attributes: map[string]any{"openinference.span.kind": "LLM"}, events: []event{{name: "First Token Stream Event", after: time.Second - 50*time.Microsecond}}},
			latency.Measure{},
		},
		"Envoy AI Gateway, live": {
			call{scope: "envoyproxy/ai-gateway", attributes: map[string]any{"openinference.span.kind": "LLM"}, events: []event{{name: "First Token Stream Event", after: 200 * ms}}},
			about(0.2),
		},
		"Vercel AI SDK": {
			call{scope: "ai", attributes: map[string]any{"ai.operationId": "ai.streamText.doStream"}, events: []event{{name: "ai.stream.firstChunk", after: 300 * ms}}},
			latency.Measure{},
		},
		"Vercel AI SDK, in the event": {
			call{scope: "ai", attributes: map[string]any{"ai.operationId": "ai.streamText.doStream"}, events: []event{
				{name: "ai.stream.firstChunk", after: time.Second, attributes: map[string]any{"ai.response.msToFirstChunk": 200.0, names.GenAIOutputTokens: 99}},
			}},
			exactly(0.2),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, l := test.call.latency(t)
			require.Equal(t, test.expected, l.Measures[numbers.TimeToFirstToken])
			require.False(t, o.Standard[names.OutputTokens].Known, "the usage on an event is ignored")
		})
	}
}

// By the conventions a call without the streaming attribute does not stream, but one with a first
// chunk before its end does.
func TestWholeAnswer_HasNoTokenTimes(t *testing.T) {
	chat := map[string]any{names.GenAIOperationName: "chat", names.GenAIOutputTokens: 12}
	openLIT := with(with(chat, "gen_ai.server.time_to_first_token", 1.0), "gen_ai.server.time_per_output_token", 0.0)
	whole := map[string]map[string]any{
		"OpenLIT":                        with(openLIT, "gen_ai.request.is_stream", false),
		"OpenLIT without the attribute":  with(with(openLIT, "telemetry.sdk.name", "openlit"), "gen_ai.server.time_to_first_token", 0.5),
		"OpenLIT, answered quickly":      with(with(openLIT, "gen_ai.request.is_stream", false), "gen_ai.server.time_to_first_token", 0.5),
		"conventions":                    with(with(chat, names.GenAIRequestStream, false), names.GenAITimeToFirstChunk, 0.5),
		"first chunk at the end":         with(chat, names.GenAITimeToFirstChunk, 0.9995),
		"Vercel AI SDK":                  {"ai.operationId": "ai.generateText.doGenerate", "ai.response.msToFirstChunk": 500.0, names.GenAIOutputTokens: 12},
		"first chunk, and the mean gap":  with(with(with(chat, names.GenAIRequestStream, "false"), names.GenAITimeToFirstChunk, 0.5), "gen_ai.client.operation.time_per_output_chunk", 0.01),
		"LiteLLM, which sends \"False\"": with(with(with(chat, "litellm.call_id", "c"), "llm.is_streaming", "False"), names.GenAITimeToFirstChunk, 0.5),
		"LangSmith, with a token event":  with(with(with(chat, "langsmith.span.kind", "llm"), "langsmith.request.streaming", false), names.GenAITimeToFirstChunk, 0.5),
	}
	for name, attributes := range whole {
		t.Run(name, func(t *testing.T) {
			c := call{attributes: attributes, events: []event{{name: "new_token", after: 300 * ms}, {name: "last_token", after: 400 * ms}}}
			o, l := c.latency(t)
			var known []numbers.ID
			for q, m := range l.Measures {
				if m.Known {
					known = append(known, numbers.ID(q))
				}
			}
			require.Equal(t, []numbers.ID{numbers.RequestDuration, numbers.RequestTokenRate}, known)
			require.False(t, l.Measures[numbers.ChunkCount].Known)
			require.Zero(t, l.Gaps(numbers.InterTokenMean))
			require.Zero(t, l.Gaps(numbers.InterChunkMean))
			require.False(t, o.Standard[names.TimeToFirstChunk].Known)
		})
	}
	streams := map[string]map[string]any{
		"OpenLIT":                               with(with(openLIT, "gen_ai.request.is_stream", true), "gen_ai.server.time_to_first_token", 0.5),
		"no attribute":                          with(chat, names.GenAITimeToFirstChunk, 0.5),
		"attribute set, first chunk at the end": with(with(chat, names.GenAIRequestStream, true), names.GenAITimeToFirstChunk, 1.0),
		"attribute not a boolean":               with(with(chat, "llm.is_streaming", "None"), names.GenAITimeToFirstChunk, 0.5),
		"LiteLLM":                               with(with(chat, "litellm.request.streaming", "True"), names.GenAITimeToFirstChunk, 1.0),
	}
	for name, attributes := range streams {
		t.Run("streams: "+name, func(t *testing.T) {
			require.True(t, (&call{attributes: attributes}).firstToken(t).Known)
		})
	}
	t.Run("an engine generates token by token either way", func(t *testing.T) {
		engine := call{name: "llm_request", attributes: map[string]any{engineTimeToFirstToken: 0.5, names.GenAIRequestStream: false}}
		require.Equal(t, exactly(0.5), engine.firstToken(t))
	})
}
