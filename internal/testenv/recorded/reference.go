// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Channel is a set of channels. Its values are those of llmstream.Channels, which this
// package cannot import as the tests of llmstream import it.
type Channel uint8

// The channels of an answer.
const (
	Content Channel = 1 << iota
	Reasoning
	ToolCall
	Refusal
)

// Unit is one event of a body: its bytes with their framing, and what it carries.
type Unit struct {
	Raw  []byte
	Name string
	Text []byte
}

// Units cuts a whole body into events. It is nil for framings that it does not know.
func (r *Answer) Units() (units []Unit) {
	switch r.ChunkUnit {
	case "sse_event":
		body := strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(string(r.Body), "\ufeff"), "\r\n", "\n"), "\r", "\n")
		for block := range strings.SplitSeq(body, "\n\n") {
			u := Unit{Raw: []byte(block + "\n\n")}
			var data []string
			for line := range strings.SplitSeq(block, "\n") {
				if rest, ok := strings.CutPrefix(line, "data:"); ok {
					data = append(data, strings.TrimPrefix(rest, " "))
				} else if rest, ok := strings.CutPrefix(line, "event:"); ok {
					u.Name = strings.TrimSpace(rest)
				}
			}
			if data != nil {
				u.Text = []byte(strings.Join(data, "\n"))
				units = append(units, u)
			}
		}
	case "ndjson_line":
		for line := range bytes.Lines(r.Body) {
			if json.Valid(line) {
				units = append(units, Unit{Raw: append(bytes.TrimSpace(line), '\n'), Text: line})
			}
		}
	case "eventstream_frame":
		for body := r.Body; len(body) > 0; {
			total, headers := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])
			u := Unit{Raw: body[:total], Text: body[12+headers : total-4]}
			if _, rest, ok := bytes.Cut(u.Raw[12:12+headers], []byte(":event-type\x07\x00")); ok {
				u.Name = string(rest[1 : 1+rest[0]])
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

func filled(v any, places ...string) bool {
	for _, path := range places {
		for _, m := range at(v, path) {
			if s, ok := m.(string); ok && s != "" {
				return true
			}
		}
	}
	return false
}

// paths are the places of the text of a format, by channel: a declarative
// restatement of the rules.
var paths = map[string]map[Channel][]string{
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

var responses = map[string]Channel{
	"response.output_text.delta": Content, "response.refusal.delta": Refusal, "response.reasoning_text.delta": Reasoning,
	"response.reasoning_summary_text.delta": Reasoning, "response.function_call_arguments.delta": ToolCall,
	"response.code_interpreter_call_code.delta": ToolCall,
}

// ChannelsOf returns the channels that an event of a family carries tokens of.
func ChannelsOf(tb testing.TB, family string, u Unit) (c Channel) {
	tb.Helper()
	if string(u.Text) == "[DONE]" {
		return 0
	}
	var v any
	require.NoError(tb, json.Unmarshal(u.Text, &v))
	if family == "responses" {
		kind, _ := v.(map[string]any)["type"].(string)
		if filled(v, "delta") {
			return responses[kind]
		}
		if items := at(v, "item.type"); kind == "response.output_item.added" && len(items) == 1 && items[0] == "function_call" && filled(v, "item.name") {
			return ToolCall
		}
		return 0
	}
	if packed := at(v, "bytes"); len(packed) == 1 {
		inner, err := base64.StdEncoding.DecodeString(packed[0].(string))
		require.NoError(tb, err)
		require.NoError(tb, json.Unmarshal(inner, &v))
	}
	for channel, places := range paths[family] {
		if filled(v, places...) {
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

// Families returns the families of formats that ChannelsOf knows.
func Families() []string { return slices.Collect(maps.Keys(paths)) }

// Family returns the family of an answer, or "" for those that are not streams or that
// ChannelsOf does not know.
func (r *Answer) Family() string {
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
