// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

// checkTruncations cuts an answer off at each place. The rest must report a part of what the
// whole answer reports, and it must not have ended if the cut is before the byte at lastToken.
func checkTruncations(t *testing.T, x AnswerHead, body []byte, lastToken int) {
	t.Helper()
	whole := decode(x, testLimits, body)
	for at := range body {
		cut := decode(x, testLimits, body[:at])
		switch {
		case len(cut.Chunks) > len(whole.Chunks) || !slices.EqualFunc(cut.Chunks, whole.Chunks[:len(cut.Chunks)], isPart):
			t.Fatalf("cut at %d: chunks %+v, those of the whole answer are %+v", at, cut.Chunks, whole.Chunks)
		case cut.Events > whole.Events || cut.Tokens > whole.Tokens || len(cut.FinishReasons) > len(whole.FinishReasons):
			t.Fatalf("cut at %d: %+v, the whole answer has %+v", at, cut, whole)
		case cut.Error != "" && cut.Error != whole.Error:
			t.Fatalf("cut at %d: error %s, that of the whole answer is %s", at, cut.Error, whole.Error)
		case cut.Unparsed.Any() && !whole.Unparsed.Any():
			t.Fatalf("cut at %d: %+v is reported as unreadable", at, cut.Unparsed)
		case cut.Ended && (!whole.Ended && cut.Streamed || at < lastToken): // one JSON object is a whole answer
			t.Fatalf("cut at %d: it ended", at)
		}
	}
	checkMemory(t, x, body)
}

// isPart reports whether a chunk is the beginning of another one: an event may hold several objects.
func isPart(cut, whole Chunk) bool {
	return cut.Index == whole.Index && cut.Channels&^whole.Channels == 0 && cut.Tokens <= whole.Tokens
}

// checkMemory requires that a decoder keeps, after each byte, to a limit below the size of
// many events.
func checkMemory(t *testing.T, x AnswerHead, body []byte) {
	t.Helper()
	limits := Limits{EventBytes: 300}
	d := newAnswerDecoder(x, limits, func(Chunk) {})
	for at := range body {
		d.Write(bytes.Clone(body[at:at+1]), 1)
		kept := 0
		switch d := d.(type) {
		case *serverSide:
			kept = held(&d.server)
		case *Decoder:
			if d.framer != nil {
				kept = held(d.framer)
			}
		}
		require.LessOrEqual(t, kept, limits.EventBytes)
	}
	d.End(2)
}

// A client that goes away, or a service that breaks off, cuts an answer anywhere. The
// formats without a short recording are in TestDecoder_ReadsFormatsWithoutRecordings.
func TestDecoder_ReportsAPartOfATruncatedAnswer(t *testing.T) {
	const framing = 4 // a blank line after the last token, without which an event is read, too
	answers := recorded.Answers(t)
	slices.SortStableFunc(answers, func(a, b recorded.Answer) int { return len(a.Body) - len(b.Body) })
	type kind struct {
		format   Format
		streamed bool
	}
	checked := map[kind]bool{}
	for _, r := range answers {
		x := headOf(&r)
		whole := decode(x, testLimits, r.Body)
		k := kind{whole.Format, whole.Streamed}
		if r.Truncated || checked[k] && len(r.Body) > 1000 || len(r.Body) > 8000 {
			continue
		}
		checked[k] = true
		lastToken := 0
		if r.LastSpan != nil {
			lastToken = r.LastSpan[1] - framing
		} else if r.ChunkUnit == "json_document" {
			lastToken = len(r.Body) - framing
		}
		t.Run(r.File, func(t *testing.T) { checkTruncations(t, x, r.Body, lastToken) })
	}
	for _, format := range []Format{
		OpenAIChat, OpenAICompletions, OpenAIResponses, OpenAIRealtime, AnthropicMessages, Gemini, GeminiLive, BedrockConverse, BedrockInvoke,
		Ollama, Triton, Cohere, Watsonx,
	} {
		assert.True(t, checked[kind{format, true}], format)
	}
}
