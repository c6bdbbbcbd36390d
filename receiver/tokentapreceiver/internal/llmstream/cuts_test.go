// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

func TestDecoder_ReportsAreEqualForEveryCut(t *testing.T) {
	cut := 0
	for _, r := range recorded.Answers(t) {
		if len(r.Body) > 1500 {
			continue
		}
		cut++
		whole := decode(headOf(&r), testLimits, r.Body)
		for at := range r.Body {
			require.Equal(t, whole, decode(headOf(&r), testLimits, r.Body, at), "%s cut at %d", r.File, at)
		}
	}
	assert.Greater(t, cut, 25)
}

func TestDecoder_ReportsTheSameForSingleBytesAndRandomPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(16, 1))
	for _, r := range recorded.Answers(t) {
		whole := decode(headOf(&r), testLimits, r.Body)
		single := make([]int, len(r.Body))
		for i := range single {
			single[i] = i
		}
		require.Equal(t, whole, decode(headOf(&r), testLimits, r.Body, single...), "%s in single bytes", r.File)
		for range 5 {
			require.Equal(t, whole, decode(headOf(&r), testLimits, r.Body, offsets(random, len(r.Body))...), r.File)
		}
	}
}

// Events after the one at which the decoder gives up must not count, even if they arrive
// in the same read.
func TestDecoder_ReportsTheSameForEveryCutAfterGivingUp(t *testing.T) {
	unknown := slices.Repeat([]string{`{"a":1}`}, maxTries)
	for name, body := range map[string]string{
		"an answer of an LLM after too many other events": sse(append(unknown, chatEvent("a"), chatEvent("b"), "x", "[DONE]")...),
		"more other events than are tried":                sse(append(unknown, `{"a":1}`, `{"a":1}`, chatEvent("a"))...),
		"another protocol, then an LLM's":                 sse(`{"jsonrpc":"2.0"}`, chatEvent("a"), `{"a":"`+strings.Repeat("x", 500)+`"}`) + "data: {",
	} {
		x := AnswerHead{Path: "/x", ContentType: "text/event-stream"}
		limits := Limits{EventBytes: 400}
		whole := decode(x, limits, []byte(body))
		assert.Empty(t, whole.Format, name)
		assert.Empty(t, whole.Chunks, name)
		for at := range body {
			require.Equal(t, whole, decode(x, limits, []byte(body), at), "%s, cut at %d", name, at)
		}
	}
}

// offsets returns random places to cut a body of n bytes.
func offsets(random *rand.Rand, n int) (cuts []int) {
	longest := 1 + random.IntN(600)
	for at := random.IntN(longest); at < n; at += 1 + random.IntN(longest) {
		cuts = append(cuts, at)
	}
	return cuts
}

// The places of the first and last chunk come from the index: the time of a chunk must
// be that of the byte that completes its event.
func TestDecoder_TakesTheTimeOfTheReadThatCompletesTheEvent(t *testing.T) {
	checked := 0
	for _, r := range recorded.Answers(t) {
		if r.FirstSpan == nil || r.ChunkUnit == "json_document" {
			continue
		}
		var times []int64
		d := NewDecoder(headOf(&r), testLimits, func(c Chunk) { times = append(times, c.Time) })
		for i := range r.Body {
			d.Write(r.Body[i:i+1], int64(i+1))
		}
		d.End(int64(len(r.Body)))
		require.NotEmpty(t, times, r.File)
		const framing = 4 // blank line
		assert.InDelta(t, r.FirstSpan[1], times[0], framing, r.File)
		assert.InDelta(t, r.LastSpan[1], times[len(times)-1], framing, r.File)
		checked++
	}
	assert.Greater(t, checked, 60)
}
