// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A unit is one event of a body: its bytes with their framing, and what it carries.
type unit struct {
	raw  []byte
	name string
	text []byte
}

// referenceUnits cuts a whole body into events, with all of it in memory.
func referenceUnits(r recording) (units []unit) {
	switch r.ChunkUnit {
	case "sse_event":
		body := strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(string(r.body), "\ufeff"), "\r\n", "\n"), "\r", "\n")
		for block := range strings.SplitSeq(body, "\n\n") {
			u := unit{raw: []byte(block + "\n\n")}
			var data []string
			for line := range strings.SplitSeq(block, "\n") {
				if rest, ok := strings.CutPrefix(line, "data:"); ok {
					data = append(data, strings.TrimPrefix(rest, " "))
				} else if rest, ok := strings.CutPrefix(line, "event:"); ok {
					u.name = strings.TrimSpace(rest)
				}
			}
			if data != nil {
				u.text = []byte(strings.Join(data, "\n"))
				units = append(units, u)
			}
		}
	case "ndjson_line":
		for line := range bytes.Lines(r.body) {
			if json.Valid(line) {
				units = append(units, unit{raw: append(bytes.TrimSpace(line), '\n'), text: line})
			}
		}
	case "eventstream_frame":
		for body := r.body; len(body) > 0; {
			total, headers := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])
			u := unit{raw: body[:total], text: body[12+headers : total-4]}
			if _, rest, ok := bytes.Cut(u.raw[12:12+headers], []byte(":event-type\x07\x00")); ok {
				u.name = string(rest[1 : 1+rest[0]])
			}
			units = append(units, u)
			body = body[total:]
		}
	}
	return units
}

// at walks a path of member names and, as "*", of all elements, and returns the values
// at its end.
func at(v any, path string) []any {
	if path == "" {
		return []any{v}
	}
	name, rest, _ := strings.Cut(path, ".")
	var found []any
	switch v := v.(type) {
	case map[string]any:
		if m, ok := v[name]; ok {
			found = at(m, rest)
		}
	case []any:
		for _, m := range v {
			if name == "*" {
				found = append(found, at(m, rest)...)
			}
		}
	}
	return found
}

func filled(v any, paths ...string) bool {
	for _, path := range paths {
		for _, m := range at(v, path) {
			if s, ok := m.(string); ok && s != "" {
				return true
			}
		}
	}
	return false
}

// referencePaths are the places of the text of a format, by channel: a declarative
// restatement of the rules. A path may begin with the values that `type` must have.
var referencePaths = map[string]map[Channels][]string{
	"chat": {
		Content:   {"choices.*.delta.content", "choices.*.delta.content.*.text"},
		Reasoning: {"choices.*.delta.reasoning", "choices.*.delta.reasoning_content", "choices.*.delta.reasoning_details.*.text", "choices.*.delta.reasoning_details.*.summary", "choices.*.delta.content.*.thinking.*.text"},
		ToolCall:  {"choices.*.delta.tool_calls.*.function.name", "choices.*.delta.tool_calls.*.function.arguments"},
		Refusal:   {"choices.*.delta.refusal"},
	},
	"completions": {Content: {"choices.*.text"}},
	"anthropic": {
		Content: {"delta.text", "content_block.text"}, Reasoning: {"delta.thinking", "content_block.thinking"},
		ToolCall: {"delta.partial_json", "content_block.name"},
	},
	"gemini": {Content: {"candidates.*.content.parts.*.text"}, ToolCall: {"candidates.*.content.parts.*.functionCall.name", "candidates.*.content.parts.*.executableCode.code"}},
	"converse": {
		Content: {"delta.text"}, Reasoning: {"delta.reasoningContent.text"}, ToolCall: {"delta.toolUse.input", "start.toolUse.name"},
	},
	"ollama": {Content: {"message.content", "response"}, Reasoning: {"message.thinking", "thinking"}},
	"cohere": {
		Content: {"delta.message.content.text"}, Reasoning: {"delta.message.tool_plan"},
		ToolCall: {"delta.message.tool_calls.function.name", "delta.message.tool_calls.function.arguments"},
	},
}

var referenceResponses = map[string]Channels{
	"response.output_text.delta": Content, "response.refusal.delta": Refusal, "response.reasoning_text.delta": Reasoning,
	"response.reasoning_summary_text.delta": Reasoning, "response.function_call_arguments.delta": ToolCall,
	"response.code_interpreter_call_code.delta": ToolCall,
}

// referenceOf returns the channels of an event as the plain parser sees them.
func referenceOf(t *testing.T, family string, u unit) (c Channels) {
	if string(u.text) == "[DONE]" {
		return 0
	}
	var v any
	require.NoError(t, json.Unmarshal(u.text, &v))
	if family == "responses" {
		kind, _ := v.(map[string]any)["type"].(string)
		if filled(v, "delta") {
			return referenceResponses[kind]
		}
		if items := at(v, "item.type"); kind == "response.output_item.added" && len(items) == 1 && items[0] == "function_call" && filled(v, "item.name") {
			return ToolCall
		}
		return 0
	}
	if packed := at(v, "bytes"); len(packed) == 1 {
		inner, err := base64.StdEncoding.DecodeString(packed[0].(string))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(inner, &v))
	}
	for channel, paths := range referencePaths[family] {
		if filled(v, paths...) {
			c |= channel
		}
	}
	if family == "gemini" { // the flag stands beside the text
		c &^= Content
		for _, part := range at(v, "candidates.*.content.parts.*") {
			if thought := at(part, "thought"); filled(part, "text") && len(thought) == 1 && thought[0] == true {
				c |= Reasoning
			} else if filled(part, "text") {
				c |= Content
			}
		}
	}
	return c
}

// family returns the set of paths for a recording's answer, or "" for those that are not
// streams or that the reference does not know.
func family(r recording) string {
	switch dir, name, _ := strings.Cut(r.File, "/"); {
	case r.ChunkUnit == "json_document", r.ChunkUnit == "ws_message_received", r.ChunkUnit == "json_array_element",
		strings.Contains(name, "derived"), dir == "other", dir == "triton":
		return ""
	case strings.HasSuffix(r.RequestPath, "/chat/completions"):
		return "chat"
	case strings.HasSuffix(r.RequestPath, "/completions"):
		return "completions"
	case strings.HasSuffix(r.RequestPath, "/responses"):
		return "responses"
	case dir == "anthropic_messages", name == "claude3_messages.bin", name == "claude_haiku45_tool.bin":
		return "anthropic"
	case dir == "gemini":
		return "gemini"
	case dir == "bedrock_converse":
		return "converse"
	case dir == "ollama":
		return "ollama"
	case name == "v2_text.sse", name == "v2_tool_plan_two_calls.sse":
		return "cohere"
	}
	return ""
}

// Streams that no one recorded: events of a recording dropped, repeated and in another
// order, cut at random. A plain parser that reads the whole answer must agree on the
// channels of each event.
func TestDecoder_AgreesWithAPlainParser(t *testing.T) {
	random := rand.New(rand.NewPCG(16, 3))
	compared := map[string]int{}
	for _, r := range recordings(t) {
		name := family(r)
		if name == "" || len(r.body) > 100_000 {
			continue
		}
		units := referenceUnits(r)
		require.Len(t, units, int(r.TotalChunks), r.File)
		for range 8 {
			stream := []unit{units[0]} // it shows the format
			for range random.IntN(2 * len(units)) {
				stream = append(stream, units[random.IntN(len(units))])
			}
			var body []byte
			var want []Channels
			for _, u := range stream {
				body = append(body, u.raw...)
				want = append(want, referenceOf(t, name, u))
			}
			s := decode(r.exchange(), testLimits, body, offsets(random, len(body))...)
			got := make([]Channels, len(want))
			for _, c := range s.Chunks {
				require.Less(t, int(c.Index), len(got), r.File)
				got[c.Index] = c.Channels
			}
			require.Equal(t, want, got, r.File)
			require.Equal(t, int64(len(stream)), s.Events, r.File)
			compared[name]++
		}
	}
	for name := range referencePaths {
		assert.NotZero(t, compared[name], name)
	}
}
