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

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// tokenStreamSpan returns the span of a stream that lasts a second and has two tokens.
func tokenStreamSpan() ptrace.Span {
	span := ptrace.NewSpan()
	span.SetStartTimestamp(5_000_000_000)
	span.SetEndTimestamp(6_000_000_000)
	var line timeline.Timeline
	line.Append(5_100_000_000, 1, timeline.Content)
	line.Append(5_200_000_000, 1, timeline.Content)
	span.Attributes().PutEmptyBytes(names.Timeline).FromRaw(line.AppendBinary(nil, 5_000_000_000))
	return span
}

func TestTokenStream_AllAttributes(t *testing.T) {
	span := tokenStreamSpan()
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Attributes().PutStr(names.Vantage, "client")
	span.Attributes().PutStr(names.Outcome, "cancelled")
	span.Attributes().PutDouble("tokenpulse.queue.duration", 0.0123)
	span.Attributes().PutInt(names.GenAIOutputTokens, 12)
	span.Attributes().PutInt(names.ChunksDropped, 3)
	span.Attributes().PutBool(names.Frames, true)
	span.Attributes().PutBool(names.Uncounted, true)

	o, err := new(Observer).Observe("", span)
	require.NoError(t, err)
	require.NotNil(t, o)
	require.Equal(t, "token_stream", Names()[o.Reader])
	require.Equal(t, timeline.VantageClient, o.Vantage)
	require.Equal(t, latency.Observed{
		Duration:          time.Second,
		Queue:             optional.Of(12_300 * time.Microsecond),
		OutputTokens:      optional.Of(int64(12)),
		LastChunksDropped: 3,
		Frames:            true,
		TokensAssumed:     true,
		Outcome:           "cancelled",
		Failed:            true,
	}, o.Request)
	require.Zero(t, o.Unusable)
	require.True(t, o.Timeline.Next())
	require.Equal(t, 100*time.Millisecond, o.Timeline.Offset())
	require.Equal(t, 1, o.Timeline.Left())
}

func TestTokenStream_TimelineOnly(t *testing.T) {
	o, err := new(Observer).Observe("", tokenStreamSpan())
	require.NoError(t, err)
	require.NotNil(t, o)
	require.Equal(t, timeline.VantageServer, o.Vantage)
	require.Equal(t, latency.Observed{Duration: time.Second}, o.Request)
}

func TestVantage_CarriedBySpan(t *testing.T) {
	for carried, expected := range map[string]timeline.Vantage{
		"client": timeline.VantageClient, "gateway": timeline.VantageGateway, "server": timeline.VantageServer, "engine": timeline.VantageEngine,
		"": timeline.VantageServer, "the moon": timeline.VantageServer,
	} {
		span := tokenStreamSpan()
		span.Attributes().PutStr(names.Vantage, carried)
		o, err := new(Observer).Observe("", span)
		require.NoError(t, err)
		require.Equal(t, expected, o.Vantage, "carried %q", carried)
	}
}

func TestDuration_NegativeIfSpanEndsBeforeItStarts(t *testing.T) {
	span := tokenStreamSpan()
	span.SetEndTimestamp(4_999_999_999)
	o, err := new(Observer).Observe("", span)
	require.NoError(t, err)
	require.Equal(t, -time.Nanosecond, o.Request.Duration)
}

func TestTokenStream_UnreadableTimeline(t *testing.T) {
	tests := map[string]struct {
		set     func(v pcommon.Value)
		message string
	}{
		"text":             {func(v pcommon.Value) { v.SetStr("AQEA") }, "tokenpulse.timeline has type Str; it must be bytes"},
		"a list":           {func(v pcommon.Value) { v.SetEmptySlice() }, "tokenpulse.timeline has type Slice; it must be bytes"},
		"empty":            {func(v pcommon.Value) { v.SetEmptyBytes() }, "truncated"},
		"another version":  {func(v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte{99, 0, 0}) }, "version 99"},
		"a header cut off": {func(v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte{2, 5}) }, "truncated"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			span := ptrace.NewSpan()
			test.set(span.Attributes().PutEmpty(names.Timeline))
			o, err := new(Observer).Observe("", span)
			require.NotNil(t, o)
			require.ErrorContains(t, err, test.message)
		})
	}
}

// Instrumentations and encodings send the same number in different types.
func TestNumbers_OfEveryType(t *testing.T) {
	type number = optional.Value[int64]
	integers := map[string]struct {
		value    any
		expected number
	}{
		"integer":               {int64(12), optional.Of(int64(12))},
		"negative":              {int64(-1), number{}},
		"double":                {12.0, optional.Of(int64(12))},
		"string":                {"12", optional.Of(int64(12))},
		"string of a double":    {"12.0", optional.Of(int64(12))},
		"largest":               {"9223372036854775807", optional.Of(int64(math.MaxInt64))},
		"half a token":          {0.5, number{}},
		"beyond 64 bits":        {1e300, number{}},
		"just beyond 64 bits":   {float64(1 << 63), number{}},
		"not a number":          {math.NaN(), number{}},
		"infinite":              {math.Inf(1), number{}},
		"infinite, as a string": {"Inf", number{}},
		"text":                  {"twelve", number{}},
		"empty":                 {"", number{}},
		"boolean":               {true, number{}},
		"bytes":                 {[]byte{12}, number{}},
		"list":                  {[]any{int64(12)}, number{}},
		"nothing":               {nil, number{}},
	}
	for name, test := range integers {
		t.Run("tokens: "+name, func(t *testing.T) {
			span := tokenStreamSpan()
			require.NoError(t, span.Attributes().PutEmpty(names.GenAIOutputTokens).FromRaw(test.value))
			o, err := new(Observer).Observe("", span)
			require.NoError(t, err)
			require.NotNil(t, o)
			require.Equal(t, test.expected, o.Request.OutputTokens)
			require.Equal(t, !test.expected.Known, o.Unusable == 1)
		})
	}

	type duration = optional.Value[time.Duration]
	durations := map[string]struct {
		value    any
		expected duration
	}{
		"double":                  {0.25, optional.Of(250 * time.Millisecond)},
		"rounded to a nanosecond": {0.0030000000004, optional.Of(3 * time.Millisecond)},
		"integer":                 {int64(2), optional.Of(2 * time.Second)},
		"string":                  {"0.25", optional.Of(250 * time.Millisecond)},
		"negative":                {-1.0, optional.Of(-time.Second)}, // package latency rejects it
		"beyond 292 years":        {1e10, duration{}},
		"not a number":            {math.NaN(), duration{}},
		"with a unit":             {"250ms", duration{}},
	}
	for name, test := range durations {
		t.Run("queue: "+name, func(t *testing.T) {
			span := tokenStreamSpan()
			require.NoError(t, span.Attributes().PutEmpty("tokenpulse.queue.duration").FromRaw(test.value))
			o, err := new(Observer).Observe("", span)
			require.NoError(t, err)
			require.Equal(t, test.expected, o.Request.Queue)
			require.Equal(t, !test.expected.Known, o.Unusable == 1)
		})
	}
}

func TestDroppedChunks_ImplausibleCountIsIgnored(t *testing.T) {
	for _, dropped := range []int64{-5, math.MaxInt64} {
		span := tokenStreamSpan()
		span.Attributes().PutInt(names.ChunksDropped, dropped)
		o, err := new(Observer).Observe("", span)
		require.NoError(t, err)
		require.Zero(t, o.Request.LastChunksDropped)
		require.EqualValues(t, 1, o.Unusable)
	}
}
