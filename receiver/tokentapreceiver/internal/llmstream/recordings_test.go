// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

func headOf(r *recorded.Answer) AnswerHead {
	path, query, _ := strings.Cut(r.RequestPath, "?")
	header := http.Header{}
	for name, v := range r.ResponseHeaders {
		header.Set(name, v)
	}
	return AnswerHead{Path: path, RawQuery: query, Status: r.Status, ContentType: r.ContentType, Header: header}
}

var testLimits = Limits{EventBytes: 1 << 20}

// seen is everything that a decoder reported.
type seen struct {
	Observation
	Chunks []Chunk
}

// answerDecoder is a Decoder, or a Connection with one response.
type answerDecoder interface {
	Write(p []byte, time int64)
	End(time int64)
	Observation() Observation
}

func newAnswerDecoder(x AnswerHead, limits Limits, chunk func(Chunk)) answerDecoder {
	if x.Status != http.StatusSwitchingProtocols {
		return NewDecoder(x, limits, chunk)
	}
	s := &serverSide{chunk: chunk}
	s.Connection = NewConnection(x, limits, func(int64, bool) Response { return (*lastResponse)(s) })
	return s
}

type serverSide struct {
	*Connection
	chunk func(Chunk)
	last  Observation
}

func (s *serverSide) Write(p []byte, time int64) { s.WriteServer(p, time) }
func (s *serverSide) End(time int64)             { s.Connection.End(time) }

// Observation returns that of the last response, with all messages of the server.
func (s *serverSide) Observation() Observation {
	o := s.last
	o.Events = s.index
	return o
}

type lastResponse serverSide

func (l *lastResponse) Chunk(c Chunk)              { l.chunk(c) }
func (l *lastResponse) End(o Observation, _ int64) { l.last = o }

// decode passes a body in pieces that end at the offsets.
func decode(x AnswerHead, limits Limits, body []byte, offsets ...int) (s seen) {
	d := newAnswerDecoder(x, limits, func(c Chunk) {
		c.Time = 0
		s.Chunks = append(s.Chunks, c)
	})
	start := 0
	for _, end := range append(offsets, len(body)) {
		d.Write(bytes.Clone(body[start:end]), int64(end))
		start = end
	}
	d.End(int64(len(body)) + 1)
	s.Observation = d.Observation()
	return s
}

func (s *seen) index(which func(Chunk) bool) *int64 {
	if i := slices.IndexFunc(s.Chunks, which); i >= 0 {
		return &s.Chunks[i].Index
	}
	return nil
}

func pointer(v optional.Value[int64]) *int64 {
	if !v.Known {
		return nil
	}
	return &v.Value
}

func TestRecordings_GiveTheExpectedValues(t *testing.T) {
	for _, r := range recorded.Answers(t) {
		t.Run(r.File, func(t *testing.T) {
			x := headOf(&r)
			x.Header.Del("x-amzn-errortype") // the expected error is that of the body
			s := decode(x, testLimits, r.Body)
			if r.File == "other/mcp_streamable_http_crlf.sse" {
				assert.Empty(t, s.Format)
				assert.Empty(t, s.Chunks)
				return
			}
			assert.NotEmpty(t, s.Format)
			assert.Equal(t, r.TotalChunks, s.Events, "events")
			assert.Equal(t, r.TokenChunks, s.TokenChunks, "token chunks")
			audio := slices.DeleteFunc(slices.Clone(s.Chunks), func(c Chunk) bool { return c.Channels&Audio == 0 })
			assert.Len(t, audio, int(r.AudioChunks), "audio")
			assert.Equal(t, r.AudioChunks, s.ChunksOf(Audio))
			assert.Equal(t, optional.Value[time.Duration]{Value: lengthOfAudio(t, &r), Known: r.AudioChunks > 0}, s.AudioDuration)
			assert.Equal(t, r.Interrupted, s.Interrupted)
			s.Chunks = slices.DeleteFunc(s.Chunks, func(c Chunk) bool { return c.Tokens == 0 })
			assert.Len(t, s.Chunks, int(r.TokenChunks))
			channels := map[string]int64{
				"content": s.ByChannel[0], "reasoning": s.ByChannel[1], "tool_call": s.ByChannel[2], "refusal": s.ByChannel[3],
			}
			assert.Equal(t, r.Channels, channels)
			assert.Equal(t, r.First, s.index(func(Chunk) bool { return true }), "first")
			assert.Equal(t, r.FirstOutput, s.index(func(c Chunk) bool { return c.Channels != Reasoning }), "first output")
			if r.Last != nil && assert.NotEmpty(t, s.Chunks) {
				assert.Equal(t, *r.Last, s.Chunks[len(s.Chunks)-1].Index, "last")
			}
			assert.Equal(t, r.Model, s.Model, "model")
			assert.Equal(t, r.Error, s.Error, "error")
			assert.Equal(t, r.ChunkUnit != "json_document", s.Streamed, "streamed")
			if len(r.IDs) > 0 {
				assert.Equal(t, r.IDs[len(r.IDs)-1], s.ResponseID)
			}
			if r.File == "tgi/hf_endpoint_unary_list.json" {
				// Its recorder did not read the details of a list.
				r.FinishReason = "eos_token"
			}
			var reasons []string
			switch want := r.FinishReason.(type) {
			case nil:
			case []any:
				for _, reason := range want {
					reasons = append(reasons, fmt.Sprint(reason))
				}
			default:
				reasons = []string{fmt.Sprint(want)}
			}
			assert.Equal(t, reasons, s.FinishReasons, "finish reasons")
			if r.Usage == nil {
				if _, header := r.ResponseHeaders["x-generated-tokens"]; !header {
					assert.Equal(t, Usage{}, s.Reported, "usage")
				}
			} else {
				assert.Equal(t, r.Usage.Input, pointer(s.Reported.Input), "input")
				assert.Equal(t, r.Usage.Output, pointer(s.Reported.Output), "output")
				assert.Equal(t, r.Usage.Reasoning, pointer(s.Reported.Reasoning), "reasoning")
				assert.Equal(t, r.Usage.Cached, pointer(s.Reported.CacheRead), "cached")
				assert.Equal(t, *r.UsageIsFinal, s.UsageFinal, "final")
			}
		})
	}
}

// lengthOfAudio decodes the audio of a recording, all of which is PCM of 16 bits at 24 kHz.
func lengthOfAudio(t *testing.T, r *recorded.Answer) (length time.Duration) {
	var find func(v any)
	find = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			text := v["data"]
			if v["type"] == "response.output_audio.delta" {
				text = v["delta"]
			}
			if encoded, ok := text.(string); ok {
				audio, err := base64.StdEncoding.DecodeString(encoded)
				require.NoError(t, err)
				length += time.Duration(math.Round(float64(len(audio)) * 1e9 / 48_000))
			}
			for _, m := range v {
				find(m)
			}
		case []any:
			for _, m := range v {
				find(m)
			}
		}
	}
	for _, message := range r.Messages {
		var v any
		require.NoError(t, json.Unmarshal(message, &v))
		find(v)
	}
	return length
}

// identifying are the names of members that keep their values: identifiers of the
// formats, models and times.
var identifying = regexp.MustCompile(`^(type|object|role|model|modelVersion|model_name|model_id|status|code|error_type|event_type|modality|created_at|` +
	`finish_reason|native_finish_reason|finishReason|stop_reason|stopReason|completionReason|done_reason|mimeType|.*_time_ns)$`)

var identifier = regexp.MustCompile(`^[A-Za-z0-9_.:/@;=-]{0,50}$`)

// isWritten reports whether text has a letter or digit that is no replacement.
func isWritten(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return (unicode.IsLetter(r) || unicode.IsDigit(r)) && !strings.ContainsRune("xX0éあ", r)
	})
}

func TestRecordings_HoldNoText(t *testing.T) {
	checked := 0
	var check func(file, name string, v any)
	check = func(file, name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, m := range v {
				check(file, name, m)
			}
		case []any:
			for _, m := range v {
				check(file, name, m)
			}
		case string:
			if isWritten(v) {
				require.Regexp(t, identifying, name, "%s: %s", file, v)
				require.Regexp(t, identifier, v, "%s: %s", file, name)
			}
			checked++
		}
	}
	for _, r := range recorded.Answers(t) {
		texts := r.Messages
		if units := r.Units(); units != nil {
			for _, u := range units {
				texts = append(texts, u.Text)
			}
		}
		if texts == nil {
			texts = [][]byte{r.Body}
		}
		for _, text := range texts {
			if string(text) == "[DONE]" {
				continue
			}
			var v any
			require.NoError(t, json.Unmarshal(text, &v), "%s: %s", r.File, text)
			if frame, ok := v.(map[string]any); ok && frame["bytes"] != nil {
				inner, err := base64.StdEncoding.DecodeString(frame["bytes"].(string))
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(inner, &v))
			}
			check(r.File, "", v)
		}
		if r.ChunkUnit == "sse_event" {
			for line := range strings.FieldsFuncSeq(string(r.Body), func(c rune) bool { return c == '\n' || c == '\r' }) {
				field, rest, _ := strings.Cut(strings.TrimPrefix(line, "\ufeff"), ":")
				switch field {
				case "data":
				case "event":
					require.Regexp(t, identifier, strings.TrimSpace(rest), r.File)
				case "": // a comment
					require.Equal(t, " OPENROUTER PROCESSING", rest, r.File)
				default:
					require.False(t, isWritten(rest), "%s: %s", r.File, line)
				}
			}
		}
		for _, id := range r.IDs {
			require.False(t, isWritten(id), r.File)
		}
		for name, text := range r.UsageRaw {
			var v any
			require.NoError(t, json.Unmarshal(text, &v))
			check(r.File, name, v)
		}
	}
	assert.Greater(t, checked, 12_000)
}
