// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// withOffsets returns a span of a second with the attributes, of which chunk offsets have a default.
func withOffsets(t *testing.T, own map[string]any) ptrace.Span {
	t.Helper()
	span := ptrace.NewSpan()
	span.SetStartTimestamp(5_000_000_123)
	span.SetEndTimestamp(6_000_000_123)
	require.NoError(t, span.Attributes().FromRaw(own))
	if _, ok := own[names.ChunkOffsets]; !ok {
		for _, offset := range []int64{100_001, 200_002} {
			span.Attributes().GetOrPutEmpty(names.ChunkOffsets)
			attributes.List(span.Attributes(), names.ChunkOffsets).AppendEmpty().SetInt(offset)
		}
	}
	return span
}

type arrival struct {
	after   time.Duration
	tokens  uint32
	channel timeline.Channel
}

func arrivals(t *testing.T, o *Observation) (all []arrival) {
	t.Helper()
	for o.Timeline.Next() {
		all = append(all, arrival{o.Timeline.Offset(), o.Timeline.Tokens(), o.Timeline.Channel()})
	}
	require.NoError(t, o.Timeline.Err())
	return all
}

func TestChunkOffsets_AreExactToTheMicrosecond(t *testing.T) {
	tests := map[string]struct {
		attributes map[string]any
		expected   []arrival
	}{
		"offsets alone": {nil, []arrival{{100_001_000, 1, timeline.Content}, {200_002_000, 1, timeline.Content}}},
		"tokens and channels": {
			map[string]any{names.ChunkTokens: []any{int64(3), int64(1)}, names.ChunkChannels: []any{"reasoning", "tool_call"}},
			[]arrival{{100_001_000, 3, timeline.Reasoning}, {200_002_000, 1, timeline.ToolCall}},
		},
		"a chunk of no tokens": {
			map[string]any{names.ChunkTokens: []any{int64(0), int64(1)}}, []arrival{{200_002_000, 1, timeline.Content}},
		},
		"numbers as doubles and texts, two at once": {
			map[string]any{names.ChunkOffsets: []any{5.0, "7", int64(7)}},
			[]arrival{{5_000, 1, timeline.Content}, {7_000, 1, timeline.Content}, {7_000, 1, timeline.Content}},
		},
		"no chunk": {map[string]any{names.ChunkOffsets: []any{}, names.ChunkTokens: []any{}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, err := new(Observer).Observe("", withOffsets(t, test.attributes))
			require.NoError(t, err)
			require.Equal(t, "chunk_offsets", Names()[o.Reader])
			require.Equal(t, test.expected, arrivals(t, o))
		})
	}
}

func TestChunkOffsets_Unreadable(t *testing.T) {
	offsets := func(values ...any) map[string]any { return map[string]any{names.ChunkOffsets: values} }
	tests := map[string]struct {
		attributes map[string]any
		message    string
	}{
		"text":                  {map[string]any{names.ChunkOffsets: "[1,2]"}, "tokenpulse.chunk.offsets has type Str; it must be an array of integers"},
		"not in order":          {offsets(int64(2), int64(1)), "tokenpulse.chunk.offsets[1] must be"},
		"negative":              {offsets(int64(-1)), "tokenpulse.chunk.offsets[0] must be"},
		"a fraction":            {offsets(int64(1), 1.5), "tokenpulse.chunk.offsets[1] must be"},
		"a value without type":  {offsets(nil), "tokenpulse.chunk.offsets[0] must be"},
		"34 years":              {offsets(int64(1)<<30*1_000_000 + 1), "tokenpulse.chunk.offsets[0] must be"},
		"overflows nanoseconds": {offsets(int64(math.MaxInt64)), "tokenpulse.chunk.offsets[0] must be"},
		"too many": {
			offsets(make([]any, 100_001)...),
			"tokenpulse.chunk.offsets has 100001 values; send at most 100000, and the number of further chunks in tokenpulse.chunk.dropped",
		},
		"tokens of another length":   {map[string]any{names.ChunkTokens: []any{int64(1)}}, "tokenpulse.chunk.tokens has 1 values and tokenpulse.chunk.offsets 2"},
		"no tokens":                  {map[string]any{names.ChunkTokens: []any{}}, "tokenpulse.chunk.tokens has 0 values"},
		"tokens that are no array":   {map[string]any{names.ChunkTokens: int64(2)}, "tokenpulse.chunk.tokens has type Int; it must be an array"},
		"negative tokens":            {map[string]any{names.ChunkTokens: []any{int64(1), int64(-1)}}, "tokenpulse.chunk.tokens[1] must be an integer from 0 to 1048576"},
		"too many tokens":            {map[string]any{names.ChunkTokens: []any{int64(1 << 21), int64(1)}}, "tokenpulse.chunk.tokens[0] must be"},
		"channels of another length": {map[string]any{names.ChunkChannels: []any{"content", "content", "content"}}, "tokenpulse.chunk.channels has 3 values"},
		"a channel cut short":        {map[string]any{names.ChunkChannels: []any{"content", "reason"}}, "tokenpulse.chunk.channels[1] must be content, reasoning, tool_call or audio"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, err := new(Observer).Observe("", withOffsets(t, test.attributes))
			require.NotNil(t, o)
			require.ErrorContains(t, err, test.message)
			require.NotContains(t, err.Error(), "reason\"", "an error quotes no value")
		})
	}
}

func TestChunkOffsets_VantageByAttributeOrKind(t *testing.T) {
	for _, test := range []struct {
		kind     ptrace.SpanKind
		carried  string
		expected timeline.Vantage
	}{
		{ptrace.SpanKindServer, "", timeline.VantageServer},
		{ptrace.SpanKindClient, "", timeline.VantageClient},
		{ptrace.SpanKindInternal, "", timeline.VantageClient},
		{ptrace.SpanKindClient, "gateway", timeline.VantageGateway},
		{ptrace.SpanKindServer, "the moon", timeline.VantageServer},
	} {
		span := withOffsets(t, map[string]any{names.Vantage: test.carried})
		span.SetKind(test.kind)
		o, err := new(Observer).Observe("", span)
		require.NoError(t, err)
		require.Equal(t, test.expected, o.Vantage, "%v", test)
	}
}

func TestChunkOffsets_OutcomeOfTheSenderBeforeFinishReasons(t *testing.T) {
	for carried, expected := range map[string]string{"": "error", "incomplete": "incomplete"} {
		span := withOffsets(t, map[string]any{names.Outcome: carried, names.GenAIFinishReasons: []any{"abort"}})
		o, err := new(Observer).Observe("", span)
		require.NoError(t, err)
		got, err := latency.NewAnalyzer(latency.Options{}).Analyze(o.Request, o.Timeline)
		require.NoError(t, err)
		require.Equal(t, expected, got.Outcome)
	}
}

// A packed timeline is what our receivers wrote: they never write offsets beside it.
func TestChunkOffsets_YieldToAPackedTimeline(t *testing.T) {
	span := tokenStreamSpan()
	span.Attributes().PutEmptySlice(names.ChunkOffsets)
	o, err := new(Observer).Observe("", span)
	require.NoError(t, err)
	require.Equal(t, "token_stream", Names()[o.Reader])
	specific, _ := claimants("", span)
	require.Equal(t, []string{"token_stream"}, specific)
}

func TestChunkOffsets_AllocateNothing(t *testing.T) {
	offsets := make([]any, 2000)
	for i := range offsets {
		offsets[i] = int64(i * 20_000)
	}
	span, observer := withOffsets(t, map[string]any{names.ChunkOffsets: offsets}), new(Observer)
	observe := func() {
		if _, err := observer.Observe("", span); err != nil {
			t.Error(err)
		}
	}
	observe() // grows the buffer
	require.Zero(t, testing.AllocsPerRun(20, observe))
}

func TestTokenEvents(t *testing.T) {
	tests := map[string]struct {
		tokens   any // of the second event
		dropped  uint32
		unusable int64
		expected []arrival
		frames   bool
	}{
		"one token each":     {nil, 0, 0, []arrival{{100 * ms, 1, timeline.Content}, {200 * ms, 1, timeline.Content}}, false},
		"three tokens":       {"3", 0, 0, []arrival{{100 * ms, 1, timeline.Content}, {200 * ms, 3, timeline.Content}}, false},
		"no tokens":          {int64(0), 0, 0, []arrival{{100 * ms, 1, timeline.Content}}, false},
		"unusable number":    {int64(-1), 0, 1, []arrival{{100 * ms, 1, timeline.Content}, {200 * ms, 1, timeline.Content}}, false},
		"the oldest missing": {nil, 7, 0, []arrival{{100 * ms, 1, timeline.Content}, {200 * ms, 1, timeline.Content}}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			span := ptrace.NewSpan()
			span.SetStartTimestamp(5_000_000_000)
			span.SetEndTimestamp(6_000_000_000)
			span.SetDroppedEventsCount(test.dropped)
			span.Attributes().PutStr(names.GenAIOperationName, "chat")
			for i := range 2 {
				event := span.Events().AppendEmpty()
				event.SetName("gen_ai.token.generated")
				event.SetTimestamp(pcommon.Timestamp(5_100_000_000) + pcommon.Timestamp(i)*100_000_000)
				if i == 1 && test.tokens != nil {
					require.NoError(t, event.Attributes().PutEmpty("tokens").FromRaw(test.tokens))
				}
			}
			o, err := new(Observer).Observe("", span)
			require.NoError(t, err)
			require.Equal(t, "span_events", Names()[o.Reader])
			require.Equal(t, test.frames, o.Request.Frames)
			require.False(t, o.Request.NotStreamed)
			require.Equal(t, test.unusable, o.Unusable)
			require.Equal(t, test.expected, arrivals(t, o))
		})
	}
}
