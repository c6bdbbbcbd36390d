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
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// tokenStreamSpan makes the span of a stream of two tokens that lasts a second.
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

func TestReadTokenStream(t *testing.T) {
	span := tokenStreamSpan()
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Attributes().PutStr(names.Vantage, "client")
	span.Attributes().PutStr(names.Outcome, "cancelled")
	span.Attributes().PutDouble(names.QueueDuration, 0.0123)
	span.Attributes().PutInt(names.GenAIOutputTokens, 12)
	span.Attributes().PutInt(names.ChunksDropped, 3)
	span.Attributes().PutBool(names.Frames, true)

	o, err := new(Observer).Observe("", span)
	require.NoError(t, err)
	require.NotNil(t, o)
	require.Equal(t, "token_stream", Names()[o.Reader])
	require.Equal(t, "client", o.Vantage)
	require.Equal(t, latency.Request{
		Duration:          time.Second,
		Queue:             latency.Known(12_300 * time.Microsecond),
		OutputTokens:      latency.Known(int64(12)),
		LastChunksDropped: 3,
		Frames:            true,
		Outcome:           "cancelled",
		Failed:            true,
	}, o.Request)
	require.Zero(t, o.Unusable)
	require.True(t, o.Timeline.Next())
	require.Equal(t, 100*time.Millisecond, o.Timeline.Offset())
	require.Equal(t, 1, o.Timeline.Left())
}

func TestReadTokenStreamWithoutAnythingElse(t *testing.T) {
	o, err := new(Observer).Observe("", tokenStreamSpan())
	require.NoError(t, err)
	require.NotNil(t, o)
	require.Equal(t, "server", o.Vantage)
	require.Equal(t, latency.Request{Duration: time.Second}, o.Request)
}

func TestVantage(t *testing.T) {
	for told, expected := range map[string]string{
		"client": "client", "gateway": "gateway", "server": "server", "engine": "engine",
		"": "server", "the moon": "server",
	} {
		span := tokenStreamSpan()
		span.Attributes().PutStr(names.Vantage, told)
		o, err := new(Observer).Observe("", span)
		require.NoError(t, err)
		require.Equal(t, expected, o.Vantage, "told %q", told)
	}
}

func TestSpanThatEndsBeforeItStarts(t *testing.T) {
	span := tokenStreamSpan()
	span.SetEndTimestamp(4_999_999_999)
	o, err := new(Observer).Observe("", span)
	require.NoError(t, err)
	require.Equal(t, -time.Nanosecond, o.Request.Duration)
}

func TestUnreadableTimeline(t *testing.T) {
	tests := map[string]struct {
		set     func(v pcommon.Value)
		message string
	}{
		"text":             {func(v pcommon.Value) { v.SetStr("AQEA") }, "tokenpulse.timeline is of type Str, not bytes"},
		"a list":           {func(v pcommon.Value) { v.SetEmptySlice() }, "tokenpulse.timeline is of type Slice, not bytes"},
		"no bytes":         {func(v pcommon.Value) { v.SetEmptyBytes() }, "truncated"},
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

// The same number in every type that instrumentations and encodings give it.
func TestAttributeTypes(t *testing.T) {
	type optional = latency.Optional[int64]
	integers := map[string]struct {
		value    any
		expected optional
	}{
		"integer":               {int64(12), latency.Known(int64(12))},
		"negative":              {int64(-1), optional{}},
		"double":                {12.0, latency.Known(int64(12))},
		"string":                {"12", latency.Known(int64(12))},
		"string of a double":    {"12.0", latency.Known(int64(12))},
		"largest":               {"9223372036854775807", latency.Known(int64(math.MaxInt64))},
		"half a token":          {0.5, optional{}},
		"beyond 64 bits":        {1e300, optional{}},
		"just beyond 64 bits":   {float64(1 << 63), optional{}},
		"not a number":          {math.NaN(), optional{}},
		"infinite":              {math.Inf(1), optional{}},
		"infinite, as a string": {"Inf", optional{}},
		"words":                 {"twelve", optional{}},
		"empty":                 {"", optional{}},
		"boolean":               {true, optional{}},
		"bytes":                 {[]byte{12}, optional{}},
		"list":                  {[]any{int64(12)}, optional{}},
		"nothing":               {nil, optional{}},
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

	type duration = latency.Optional[time.Duration]
	durations := map[string]struct {
		value    any
		expected duration
	}{
		"double":                  {0.25, latency.Known(250 * time.Millisecond)},
		"rounded to a nanosecond": {0.0030000000004, latency.Known(3 * time.Millisecond)},
		"integer":                 {int64(2), latency.Known(2 * time.Second)},
		"string":                  {"0.25", latency.Known(250 * time.Millisecond)},
		"negative":                {-1.0, latency.Known(-time.Second)}, // left to package latency to reject
		"longer than there is":    {1e10, duration{}},
		"not a number":            {math.NaN(), duration{}},
		"with a unit":             {"250ms", duration{}},
	}
	for name, test := range durations {
		t.Run("queue: "+name, func(t *testing.T) {
			span := tokenStreamSpan()
			require.NoError(t, span.Attributes().PutEmpty(names.QueueDuration).FromRaw(test.value))
			o, err := new(Observer).Observe("", span)
			require.NoError(t, err)
			require.Equal(t, test.expected, o.Request.Queue)
			require.Equal(t, !test.expected.Known, o.Unusable == 1)
		})
	}
}

func TestImpossibleCountOfDroppedChunksIsNone(t *testing.T) {
	for _, dropped := range []int64{-5, math.MaxInt64} {
		span := tokenStreamSpan()
		span.Attributes().PutInt(names.ChunksDropped, dropped)
		o, err := new(Observer).Observe("", span)
		require.NoError(t, err)
		require.Zero(t, o.Request.LastChunksDropped)
		require.EqualValues(t, 1, o.Unusable)
	}
}
