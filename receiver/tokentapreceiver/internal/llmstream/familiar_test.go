// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

// decodeEach decodes a body like decode, and reads each event. familiar counts the events that would have been compared
// with the one before instead.
func decodeEach(x AnswerHead, body []byte) (s seen, familiar int) {
	var d *Decoder
	d = NewDecoder(x, testLimits, func(c Chunk) {
		s.Chunks = append(s.Chunks, c)
		if d.known.text > 0 {
			familiar++
		}
		d.known.text = 0
	})
	d.Write(body, 0)
	d.End(0)
	s.Observation = d.Observation()
	return s, familiar
}

// otherTexts replace a text, or a part of one. Some are no JSON, or change it.
var otherTexts = []string{
	"", "", "a", " b", "é", "あ", `\n`, `\u00e9`, `\ud800`, `\"`, `\\`, "error", "[DONE]", "stop", "tool_calls",
	`"`, `\`, `\x`, "\x01", "\xff", `","usage":{"output_tokens":3},"p":"`, `"},{"delta":{"content":"x`, "\n", "}",
}

// The events of recordings are repeated with other texts in place of one of their strings.
func TestFamiliar_AgreesWithReadingEachEvent(t *testing.T) {
	random := rand.New(rand.NewPCG(29, 1))
	all := 0
	for _, r := range recorded.Answers(t) {
		name := r.Family()
		if name == "" || len(r.Body) > 100_000 {
			continue
		}
		for range 8 {
			var body []byte
			for i, u := range r.Units() {
				if i == 0 || random.IntN(4) > 0 {
					body = append(body, u.Raw...)
				}
				for range random.IntN(3) {
					body = append(body, withOtherText(random, u.Raw)...)
				}
			}
			want, familiar := decodeEach(headOf(&r), body)
			require.Equal(t, want, decode(headOf(&r), testLimits, body), "%s:\n%s", r.File, body)
			all += familiar
		}
	}
	require.Greater(t, all, 5_000)
}

// withOtherText replaces the inside of a string of an event.
func withOtherText(random *rand.Rand, event []byte) []byte {
	parts := bytes.Split(event, []byte(`"`))
	if len(parts) > 2 {
		parts[random.IntN(len(parts))] = []byte(otherTexts[random.IntN(len(otherTexts))])
	}
	return bytes.Join(parts, []byte(`"`))
}

// An event may be compared instead of read only if reading it twice leaves the same record as once.
func TestFamiliar_RepeatedEventsAgreeInEachFormat(t *testing.T) {
	for name, c := range tokenEvents {
		if c.x.Status != 0 {
			continue // connections read each message
		}
		body := bytes.Repeat([]byte(c.event), 5)
		want, familiar := decodeEach(c.x, body)
		assert.Equal(t, want, decode(c.x, testLimits, body), name)
		assert.Equal(t, map[string]bool{
			"sglang": true, "bedrock_invoke": true, "replicate": true, "vllm": true, "dashscope": true, "audio_pieces": true,
		}[name], familiar == 0, "%s: cumulative text, token IDs, encoded JSON and what is no JSON are read", name)
	}
}

// Usage of one of several choices is added up once, so such an event is read each time.
func TestFamiliar_ReadsUsageThatAddsUp(t *testing.T) {
	last := func(choice, tokens, text string) string {
		return `{"object":"chat.completion.chunk","choices":[{"index":` + choice + `,"delta":{"content":"` + text + `"},"finish_reason":"stop"}],"usage":{"completion_tokens":` + tokens + `}}`
	}
	head := AnswerHead{Path: "/v1/chat/completions"}
	body := []byte(sse(last("0", "3", "a"), last("1", "5", "b"), last("1", "5", "c")))
	want, familiar := decodeEach(head, body)
	assert.Zero(t, familiar)
	assert.Equal(t, want, decode(head, testLimits, body))
}

func TestFamiliar_ReadsAnEventOfAnotherName(t *testing.T) {
	head := AnswerHead{Path: "/v1/chat/completions"}
	s := decode(head, testLimits, []byte(sse(chatEvent("a"))+"event: error\n"+sse(chatEvent("b"))))
	assert.Equal(t, ErrorMessageOnly, s.Error)
}

func TestFamiliar_KeepsNoLongEventAndNothingWithoutMemory(t *testing.T) {
	head := AnswerHead{Path: "/v1/chat/completions"}
	long := string(bytes.Repeat([]byte("x"), maxFamiliar))
	_, familiar := decodeEach(head, []byte(sse(chatEvent("a"), strings.Replace(chatEvent("a"), "{", `{"p":"`+long+`",`, 1), chatEvent(long), chatEvent("b"))))
	assert.Equal(t, 3, familiar, "the text is not kept")
	memory := NewMemory(2 * int64(len(chatEvent("a"))))
	account := memory.Account()
	d := NewDecoder(head, Limits{EventBytes: 1 << 10, Memory: &account}, nil)
	d.Write([]byte(sse(chatEvent("a"))), 1)
	assert.Nil(t, d.known.data, "half of the memory is left to events")
	assert.Zero(t, account.Refusals())
}
