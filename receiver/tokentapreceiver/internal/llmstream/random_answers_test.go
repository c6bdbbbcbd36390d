// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// generator writes random answers. It knows what they hold, as it chose it: it does not read
// them back.
type generator struct {
	*rand.Rand
	events []drafted
	finish string
	output int64
}

// drafted is an event and the channels that it carries tokens of.
type drafted struct {
	name, text string
	channels   Channels
}

// text returns a string in JSON and the channel, which is none for an empty string.
func (g *generator) text(c Channels) (string, Channels) {
	pieces := []string{"a", " ", "\n", `"`, `\`, "{", "]", "é", "あ", "\U0001f600", "data: ", "[DONE]", "\r\n\r\n", ":", "error", "\x00", "</think>"}
	var text strings.Builder
	for range g.IntN(4) {
		text.WriteString(pieces[g.IntN(len(pieces))])
	}
	quoted, _ := json.Marshal(text.String())
	if text.Len() == 0 {
		c = 0
	}
	return string(quoted), c
}

// object writes members, given as names and JSON values, in random order with random blanks
// and with members that no format has.
func (g *generator) object(members ...string) string {
	var pairs []string
	for i := 0; i < len(members); i += 2 {
		pairs = append(pairs, strconv.Quote(members[i])+g.blank()+":"+g.blank()+members[i+1])
	}
	if g.IntN(3) == 0 {
		pairs = append(pairs, `"p":"abcdef"`)
	}
	if g.IntN(6) == 0 {
		pairs = append(pairs, `"unknown":{"text":"x","content":[{"text":"x"}],"usage":null}`)
	}
	g.Shuffle(len(pairs), func(i, k int) { pairs[i], pairs[k] = pairs[k], pairs[i] })
	return "{" + g.blank() + strings.Join(pairs, g.blank()+",") + g.blank() + "}"
}

func (g *generator) blank() string { return []string{"", "", "", " ", "  "}[g.IntN(5)] }

func (g *generator) add(c Channels, members ...string) {
	g.events = append(g.events, drafted{"", g.object(members...), c})
}

// named adds an event whose type is also its name.
func (g *generator) named(c Channels, kind string, members ...string) {
	text := g.object(append(members, "type", strconv.Quote(kind))...)
	g.events = append(g.events, drafted{kind, text, c})
}

func (g *generator) oneOf(values ...string) string { return values[g.IntN(len(values))] }

// end chooses finish reason and output tokens.
func (g *generator) end(reasons ...string) (reason, output string) {
	g.finish, g.output = g.oneOf(reasons...), int64(g.IntN(1000))+1
	return strconv.Quote(g.finish), strconv.FormatInt(g.output, 10)
}

func (g *generator) chat(steps int) {
	const object = `"chat.completion.chunk"`
	g.add(0, "object", object, "model", `"m"`, "choices", `[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]`, "usage", "null")
	for range steps {
		var c Channels
		delta := []string{"role", `"assistant"`}
		if g.IntN(2) == 0 {
			text, channel := g.text(Content)
			if g.IntN(3) == 0 {
				text = "[" + g.object("type", `"text"`, "text", text) + "]"
			}
			delta, c = append(delta, "content", text), c|channel
		}
		if g.IntN(3) == 0 {
			text, channel := g.text(Reasoning)
			switch g.IntN(3) {
			case 0:
				delta = append(delta, "reasoning", text, "reasoning_details", "["+g.object("text", text)+"]")
			case 1:
				delta = append(delta, "reasoning_content", text)
			default:
				delta = append(delta, "reasoning_details", "["+g.object("summary", text)+"]")
			}
			c |= channel
		}
		if g.IntN(4) == 0 {
			name, first := g.text(ToolCall)
			arguments, second := g.text(ToolCall)
			call := g.object("index", "0", "function", g.object("name", name, "arguments", arguments))
			delta, c = append(delta, "tool_calls", "["+call+"]"), c|first|second
		}
		if g.IntN(6) == 0 {
			text, channel := g.text(Refusal)
			delta, c = append(delta, "refusal", text), c|channel
		}
		choice := g.object("index", "0", "delta", g.object(delta...), "finish_reason", g.oneOf("null", `""`), "logprobs", "null")
		g.add(c, "object", object, "model", `"m"`, "choices", "["+choice+"]")
	}
	reason, output := g.end("stop", "length", "tool_calls", "content_filter")
	g.add(0, "object", object, "choices", "["+g.object("index", "0", "delta", "{}", "finish_reason", reason)+"]")
	g.add(0, "object", object, "choices", "[]", "usage", g.object("completion_tokens", output, "prompt_tokens", "3"))
	g.events = append(g.events, drafted{"", "[DONE]", 0})
}

func (g *generator) completions(steps int) {
	for range steps {
		text, c := g.text(Content)
		g.add(c, "object", `"text_completion"`, "model", `"m"`, "choices", "["+g.object("index", "0", "text", text, "finish_reason", "null")+"]")
	}
	reason, output := g.end("stop", "length")
	g.add(0, "object", `"text_completion"`, "choices", "["+g.object("index", "0", "text", `""`, "finish_reason", reason)+"]", "usage", g.object("completion_tokens", output))
}

func (g *generator) responses(steps int) {
	response := func(status string, more ...string) string {
		return g.object(append(more, "object", `"response"`, "status", strconv.Quote(status), "model", `"m"`, "error", "null")...)
	}
	g.named(0, "response.created", "response", response("in_progress"))
	for range steps {
		var c Channels
		var text string
		switch g.IntN(7) {
		case 0:
			text, c = g.text(Content)
			g.named(c, "response.output_text.delta", "delta", text)
		case 1:
			text, c = g.text(Reasoning)
			g.named(c, g.oneOf("response.reasoning_text.delta", "response.reasoning_summary_text.delta"), "delta", text)
		case 2:
			text, c = g.text(ToolCall)
			g.named(c, g.oneOf("response.function_call_arguments.delta", "response.custom_tool_call_input.delta", "response.mcp_call_arguments.delta",
				"response.code_interpreter_call_code.delta"), "delta", text)
		case 3:
			text, c = g.text(Refusal)
			g.named(c, "response.refusal.delta", "delta", text)
		case 4:
			text, c = g.text(ToolCall)
			g.named(c, "response.output_item.added", "item", g.object("type", `"function_call"`, "name", text, "arguments", `""`))
		case 5:
			text, _ = g.text(Content)
			g.named(0, g.oneOf("response.output_text.done", "response.content_part.added", "response.reasoning_summary_text.done"), "text", text)
		default:
			g.named(0, "response.output_item.added", "item", g.object("type", g.oneOf(`"message"`, `"web_search_call"`, `"reasoning"`), "name", `"n"`))
		}
	}
	_, output := g.end("completed")
	g.named(0, "response.completed", "response", response("completed", "usage", g.object("output_tokens", output, "input_tokens", "3")))
}

func (g *generator) anthropic(steps int) {
	g.named(0, "message_start", "message", g.object("model", `"m"`, "usage", g.object("input_tokens", "3", "output_tokens", "1"), "content", "[]"))
	for range steps {
		var c Channels
		var text string
		switch g.IntN(7) {
		case 0:
			text, c = g.text(Content)
			g.named(c, "content_block_delta", "delta", g.object("type", `"text_delta"`, "text", text))
		case 1:
			text, c = g.text(Reasoning)
			g.named(c, "content_block_delta", "delta", g.object("type", `"thinking_delta"`, "thinking", text))
		case 2:
			text, c = g.text(ToolCall)
			g.named(c, "content_block_delta", "delta", g.object("type", `"input_json_delta"`, "partial_json", text))
		case 3:
			g.named(ToolCall, "content_block_start", "content_block", g.object("type", g.oneOf(`"tool_use"`, `"server_tool_use"`, `"mcp_tool_use"`), "name", `"n"`, "input", "{}"))
		case 4:
			g.named(Reasoning, "content_block_start", "content_block", g.object("type", `"redacted_thinking"`, "data", `"x"`))
		case 5:
			g.named(0, "content_block_delta", "delta", g.oneOf(`{"type":"signature_delta","signature":"s"}`, `{"type":"citations_delta","citation":{"cited_text":"x"}}`))
		default:
			g.named(0, g.oneOf("ping", "content_block_stop"))
		}
	}
	reason, output := g.end("end_turn", "max_tokens", "tool_use", "refusal")
	g.named(0, "message_delta", "delta", g.object("stop_reason", reason), "usage", g.object("output_tokens", output))
	g.named(0, "message_stop")
}

func (g *generator) gemini(steps int) {
	for range steps {
		var c Channels
		var parts []string
		for range g.IntN(3) {
			var channel Channels
			var text string
			switch g.IntN(5) {
			case 0:
				text, channel = g.text(Content)
				parts = append(parts, g.object("text", text))
			case 1:
				text, channel = g.text(Reasoning)
				parts = append(parts, g.object("text", text, "thought", "true"))
			case 2:
				text, channel = g.text(ToolCall)
				parts = append(parts, g.object("functionCall", g.object("name", text, "args", "{}"), "thoughtSignature", `"s"`))
			case 3:
				text, channel = g.text(ToolCall)
				parts = append(parts, g.object("executableCode", g.object("language", `"PYTHON"`, "code", text)))
			default:
				parts = append(parts, g.oneOf(`{"inlineData":{"data":"x"}}`, `{"codeExecutionResult":{"output":"x"}}`, `{"text":"","thoughtSignature":"s"}`))
			}
			c |= channel
		}
		candidate := g.object("content", g.object("role", `"model"`, "parts", "["+strings.Join(parts, ",")+"]"), "index", "0")
		g.add(c, "candidates", "["+candidate+"]", "modelVersion", `"m"`, "usageMetadata", g.object("promptTokenCount", "3"))
	}
	reason, output := g.end("STOP", "MAX_TOKENS", "SAFETY")
	g.add(0, "candidates", "["+g.object("finishReason", reason)+"]", "usageMetadata", g.object("candidatesTokenCount", output, "promptTokenCount", "3"))
}

func (g *generator) converse(steps int) {
	add := func(c Channels, name string, members ...string) {
		g.events = append(g.events, drafted{name, g.object(members...), c})
	}
	add(0, "messageStart", "role", `"assistant"`)
	for range steps {
		var c Channels
		var text string
		switch g.IntN(5) {
		case 0:
			text, c = g.text(Content)
			add(c, "contentBlockDelta", "delta", g.object("text", text))
		case 1:
			text, c = g.text(Reasoning)
			add(c, "contentBlockDelta", "delta", g.object("reasoningContent", g.object("text", text)))
		case 2:
			text, c = g.text(ToolCall)
			add(c, "contentBlockDelta", "delta", g.object("toolUse", g.object("input", text)))
		case 3:
			add(ToolCall, "contentBlockStart", "start", g.object("toolUse", g.object("name", `"n"`)))
		default:
			add(0, g.oneOf("contentBlockStop", "contentBlockDelta"), "delta", `{"reasoningContent":{"signature":"s"}}`)
		}
	}
	reason, output := g.end("end_turn", "max_tokens", "tool_use")
	add(0, "messageStop", "stopReason", reason)
	add(0, "metadata", "usage", g.object("outputTokens", output, "inputTokens", "3"))
}

func (g *generator) ollama(steps int) {
	for range steps {
		content, c := g.text(Content)
		thinking, t := g.text(Reasoning)
		message := []string{"role", `"assistant"`, "content", content, "thinking", thinking}
		if g.IntN(4) == 0 {
			message, c = append(message, "tool_calls", `[{"function":{"name":"f","arguments":{"a":1}}}]`), c|ToolCall
		}
		g.add(c|t, "model", `"m"`, "message", g.object(message...), "done", "false")
	}
	reason, output := g.end("stop", "length")
	g.add(0, "model", `"m"`, "message", `{"content":""}`, "done", "true", "done_reason", reason, "eval_count", output)
}

func (g *generator) tgi(steps int) {
	for range steps {
		text, c := g.text(Content)
		special := g.IntN(5) == 0
		if special {
			c = 0
		}
		g.add(c, "token", g.object("id", "1", "text", text, "special", strconv.FormatBool(special)), "generated_text", "null", "details", "null")
	}
	reason, output := g.end("length", "eos_token")
	g.add(0, "token", `{"id":2,"text":"</s>","special":true}`, "generated_text", `"x"`, "details", g.object("finish_reason", reason, "generated_tokens", output))
}

func (g *generator) llamaCpp(steps int) {
	for range steps {
		text, c := g.text(Content)
		g.add(c, "content", text, "stop", "false")
	}
	reason, output := g.end("eos", "word", "limit")
	g.add(0, "content", `""`, "stop", "true", "stop_type", reason, "tokens_predicted", output)
}

func (g *generator) cohere(steps int) {
	g.named(0, "message-start", "id", `"i"`, "delta", `{"message":{"role":"assistant"}}`)
	for range steps {
		var c Channels
		var text string
		switch g.IntN(5) {
		case 0:
			text, c = g.text(Content)
			g.named(c, "content-delta", "delta", g.object("message", g.object("content", g.object("text", text))))
		case 1:
			text, c = g.text(Reasoning)
			g.named(c, "content-delta", "delta", g.object("message", g.object("content", g.object("thinking", text))))
		case 2:
			text, c = g.text(Reasoning)
			g.named(c, "tool-plan-delta", "delta", g.object("message", g.object("tool_plan", text)))
		case 3:
			text, c = g.text(ToolCall)
			g.named(c, "tool-call-delta", "delta", g.object("message", g.object("tool_calls", g.object("function", g.object("arguments", text)))))
		default:
			g.named(0, g.oneOf("content-end", "citation-start", "tool-call-end"), "index", "0")
		}
	}
	reason, output := g.end("COMPLETE", "MAX_TOKENS", "TOOL_CALL")
	g.named(0, "message-end", "delta", g.object("finish_reason", reason, "usage", g.object("tokens", g.object("output_tokens", output, "input_tokens", "3"))))
}

func (g *generator) cohere1(steps int) {
	g.add(0, "event_type", `"stream-start"`, "generation_id", `"g"`, "is_finished", "false")
	for range steps {
		switch text, c := g.text(Content); g.IntN(3) {
		case 0:
			g.add(c, "event_type", `"text-generation"`, "text", text, "is_finished", "false")
		case 1:
			g.add(0, "event_type", g.oneOf(`"citation-generation"`, `"search-results"`), "citations", "["+g.object("text", text)+"]")
		default:
			text, c = g.text(ToolCall)
			g.add(c, "event_type", `"tool-calls-chunk"`, "tool_call_delta", g.object("parameters", text))
		}
	}
	reason, output := g.end("COMPLETE", "MAX_TOKENS")
	response := g.object("text", `"x"`, "meta", g.object("tokens", g.object("output_tokens", output, "input_tokens", "3")))
	g.add(0, "event_type", `"stream-end"`, "is_finished", "true", "finish_reason", reason, "response", response)
}

func (g *generator) sglang(steps int) {
	var whole strings.Builder
	meta := func(more ...string) string { return g.object(append(more, "id", `"i"`, "prompt_tokens", "3")...) }
	for range steps {
		text, c := g.text(Content)
		whole.WriteString(text[1 : len(text)-1])
		g.add(c, "text", `"`+whole.String()+`"`, "meta_info", meta("finish_reason", "null"))
	}
	reason, output := g.end("stop", "length")
	g.add(0, "text", `"`+whole.String()+`"`, "meta_info", meta("finish_reason", g.object("type", reason), "completion_tokens", output))
	g.events = append(g.events, drafted{"", "[DONE]", 0})
}

// sse frames the events with all that the format of Server-Sent Events allows.
func (g *generator) sse() []byte {
	newline := g.oneOf("\n", "\r\n", "\r")
	space := g.oneOf(" ", "")
	var b strings.Builder
	b.WriteString(g.oneOf("", "", "\ufeff"))
	for i, e := range g.events {
		for range g.IntN(3) {
			b.WriteString(g.oneOf(": keep-alive", ":", "", "retry: 10", "id: 7", "event: nothing"+newline) + newline)
		}
		if e.name != "" && g.IntN(4) > 0 {
			b.WriteString("event:" + space + e.name + newline)
		}
		lines := []string{e.text}
		if indented := new(bytes.Buffer); g.IntN(4) == 0 && json.Indent(indented, []byte(e.text), "", " ") == nil {
			lines = strings.Split(indented.String(), "\n")
		}
		for _, line := range lines {
			b.WriteString("data:" + space + line + newline)
		}
		if i < len(g.events)-1 || g.IntN(2) == 0 {
			b.WriteString(newline)
		}
	}
	return []byte(b.String())
}

func (g *generator) lines() []byte {
	var b strings.Builder
	for _, e := range g.events {
		b.WriteString(e.text + g.oneOf("\n", "\r\n", "\n\n"))
	}
	return []byte(b.String())
}

func (g *generator) array() []byte {
	var texts []string
	for _, e := range g.events {
		texts = append(texts, e.text)
	}
	return []byte("[" + strings.Join(texts, g.oneOf(",\r\n", "\n,\r\n", ",")) + "]")
}

func (g *generator) frames() (body []byte) {
	for _, e := range g.events {
		header := "\x0b:event-type\x07\x00" + string(rune(len(e.name))) + e.name
		body = append(body, frame([]byte(header+"\x0d:message-type\x07\x00\x05event"), []byte(e.text))...)
	}
	return body
}

func (g *generator) invoked() (body []byte) {
	for _, e := range g.events {
		body = append(body, jamba(e.text)...)
	}
	return body
}

// Random answers of each format, in random framing and pieces. The generator knows the
// channels of each event, the finish reason and the output tokens.
func TestDecoder_AgreesWithTheGeneratorOfRandomAnswers(t *testing.T) {
	const invoke = "/model/m/invoke-with-response-stream"
	for _, c := range []struct {
		name, path, contentType string
		write                   func(g *generator, steps int)
		frame                   func(g *generator) []byte
	}{
		{"chat", "/v1/chat/completions", "text/event-stream", (*generator).chat, (*generator).sse},
		{"chat at an unknown path", "/x", "text/event-stream", (*generator).chat, (*generator).sse},
		{"completions", "/v1/completions", "text/event-stream", (*generator).completions, (*generator).sse},
		{"responses", "/v1/responses", "text/event-stream", (*generator).responses, (*generator).sse},
		{"Anthropic", "/v1/messages", "text/event-stream", (*generator).anthropic, (*generator).sse},
		{"Gemini", "/v1beta/models/m:streamGenerateContent", "text/event-stream", (*generator).gemini, (*generator).sse},
		{"Gemini's array", "/v1beta/models/m:streamGenerateContent", "application/json", (*generator).gemini, (*generator).array},
		{"Bedrock Converse", "/model/m/converse-stream", "application/vnd.amazon.eventstream", (*generator).converse, (*generator).frames},
		{"Bedrock with Anthropic", invoke, "application/vnd.amazon.eventstream", (*generator).anthropic, (*generator).invoked},
		{"Ollama", "/api/chat", "application/x-ndjson", (*generator).ollama, (*generator).lines},
		{"TGI", "/generate_stream", "text/event-stream", (*generator).tgi, (*generator).sse},
		{"llama.cpp", "/completion", "text/event-stream", (*generator).llamaCpp, (*generator).sse},
		{"Cohere", "/v2/chat", "text/event-stream", (*generator).cohere, (*generator).sse},
		{"Cohere 1", "/v1/chat", "application/stream+json", (*generator).cohere1, (*generator).lines},
		{"SGLang", "/generate", "text/event-stream", (*generator).sglang, (*generator).sse},
	} {
		t.Run(c.name, func(t *testing.T) {
			tokenChunks := 0
			for seed := range uint64(100) {
				g := &generator{Rand: rand.New(rand.NewPCG(seed, 7))}
				c.write(g, g.IntN(12))
				body := c.frame(g)
				var want []Channels
				carrying := 0
				for _, e := range g.events {
					want = append(want, e.channels)
					if e.channels != 0 {
						carrying++
					}
				}
				x := AnswerHead{Path: c.path, Status: 200, ContentType: c.contentType}
				s := decode(x, testLimits, body, offsets(g.Rand, len(body))...)
				got := make([]Channels, s.Events)
				for _, chunk := range s.Chunks {
					got[chunk.Index] = chunk.Channels
				}
				require.Equal(t, want, got, "seed %d: %q", seed, body)
				require.Equal(t, []string{g.finish}, s.FinishReasons, "seed %d", seed)
				require.Equal(t, g.output, s.Reported.Output.Value, "seed %d", seed)
				require.True(t, s.Ended && s.Streamed && s.UsageFinal, "seed %d: %+v", seed, s.Observation)
				require.Empty(t, s.Error, "seed %d: %q", seed, body)
				require.False(t, s.Unparsed.Any() || s.Unparsed.Tail, "seed %d: %q", seed, body)
				require.Len(t, s.Chunks, carrying, "seed %d", seed)
				tokenChunks += carrying
			}
			assert.Greater(t, tokenChunks, 100)
		})
	}
}
