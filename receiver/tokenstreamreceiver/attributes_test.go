// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A sender could otherwise forge latencies, verdicts, and exemptions from SLOs.
func TestAttributes_SendersCannotSetOurs(t *testing.T) {
	b := start(t)
	forged := `{"tokenpulse.time_to_first_token":0.001,"tokenpulse.slo.met":["a"],"tokenpulse.start.unseen":true,"tokenpulse.cut":"collector","kept":"yes","nested":{"tokenpulse.outcome":"kept"}}`
	line := fmt.Sprintf(`{"event":"start","stream_id":"s","time_unix_nano":"%d","resource":{"tokenpulse.slo.met":["a"],"service.name":"chat"},"attributes":%s}`, at(0), forged)
	end := `{"event":"end","stream_id":"s","attributes":{"tokenpulse.slo.breached":["b"]}}`
	require.Equal(t, 200, b.lines(t, line, chunkLine("s", time.Millisecond), end).status)
	got := b.sink.one(t)
	for key := range got.Attributes {
		require.Contains(t, []string{"kept", "nested", "tokenpulse.outcome", "tokenpulse.vantage", "tokenpulse.timeline"}, key)
	}
	require.Equal(t, map[string]any{"tokenpulse.outcome": "kept"}, got.Attributes["nested"])
	require.Equal(t, map[string]any{"service.name": "chat"}, got.Resource)
	requireMetric(t, b, "attributes_removed", nil, 6)
}

func TestAttributes_OfEndWin(t *testing.T) {
	b := start(t)
	first := fmt.Sprintf(`{"event":"start","stream_id":"s","time_unix_nano":"%d","attributes":{"a":"start","b":1}}`, at(0))
	last := `{"event":"end","stream_id":"s","usage":{"output_tokens":3},"finish_reason":"stop",` +
		`"attributes":{"a":"end","gen_ai.usage.output_tokens":5,"gen_ai.response.finish_reasons":["length"],"tokenpulse.outcome":"great"}}`
	require.Equal(t, answer{Accepted: 3}, b.lines(t, last, first, chunkLine("s", 1)).answer)
	got := b.sink.one(t).Attributes
	require.Equal(t, "end", got["a"])
	require.EqualValues(t, 1, got["b"])
	require.EqualValues(t, 5, got["gen_ai.usage.output_tokens"])
	require.Equal(t, []any{"length"}, got["gen_ai.response.finish_reasons"])
	require.Equal(t, "success", got["tokenpulse.outcome"], "the receiver sets its own attributes")
}

func TestAttributes_AreLimited(t *testing.T) {
	b := start(t)
	half := `"attributes":{"a":"` + strings.Repeat("t", 40_000) + `"}}`
	first := fmt.Sprintf(`{"event":"start","stream_id":"s","time_unix_nano":"%d",`, at(0)) + half
	last := `{"event":"end","stream_id":"s","cancelled":true,` + half
	message := `the attributes, resource, finish_reason and error of stream "s" take more than 65536 bytes; send fewer or shorter values, or raise max_event_bytes`

	got := b.lines(t, first, last)
	require.Equal(t, answer{Accepted: 1, Rejected: 1, Errors: []answerError{{Line: 2, Message: message}}}, got.answer)
	got = b.lines(t, last)
	require.Equal(t, answer{Accepted: 1}, got.answer, "equal attributes do not count twice")
	require.Equal(t, "cancelled", b.sink.one(t).Attributes["tokenpulse.outcome"])

	require.Equal(t, 200, b.lines(t, first).status)
	got = b.lines(t, chunkLine("s", time.Millisecond), strings.NewReplacer("ttt", "uuu", `"cancelled":true,`, `"finish_reason":"stop",`).Replace(last))
	require.Equal(t, answer{Accepted: 1, Rejected: 1, Errors: []answerError{{Line: 1, Message: message}}}, got.answer, "the chunk is accepted")
	require.Zero(t, b.ingester.Store.Streams(), "ended, without the attributes")
	ended := b.sink.all()[1]
	require.Len(t, ended.Chunks, 1)
	require.Equal(t, "success", ended.Attributes["tokenpulse.outcome"])
	require.NotContains(t, ended.Attributes["a"], "u")
}

// The limit is the same for events in one request or two.
func TestAttributes_LimitedByLength(t *testing.T) {
	attributes := func(key string, n int) string {
		return fmt.Sprintf(`"attributes":{%q:%q}`, key, strings.Repeat("x", n))
	}
	first := fmt.Sprintf(`{"event":"start","stream_id":"s","time_unix_nano":"%d",%s}`, at(0), attributes("a", 33_000))
	for _, split := range []bool{false, true} {
		b := start(t)
		last := `{"event":"end","stream_id":"s",` + attributes("b", 32_000) + `}`
		if split {
			require.Equal(t, 200, b.lines(t, first).status)
			require.Equal(t, answer{Accepted: 2}, b.lines(t, chunkLine("s", 1), last).answer)
		} else {
			require.Equal(t, answer{Accepted: 3}, b.lines(t, first, chunkLine("s", 1), last).answer)
		}
		require.Len(t, b.sink.one(t).Attributes["b"], 32_000)
	}
}
