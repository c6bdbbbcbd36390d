// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// Cohere is the format of both versions of Cohere's chat.
const Cohere Format = "cohere"

var cohere = &answerFormat{
	name:     Cohere,
	provider: "cohere",
	paths:    []pathRule{{suffix: "/v1/chat", shared: true}, {suffix: "/v2/chat"}},
	hints:    []string{"event_type", "finish_reason", "generation_id", "message", "text", "type"},
	shape: func(first firstObject) bool {
		o := first.hints
		whole := o["message"].isObject() || o["text"].isString() && o["generation_id"] != nil
		return o["type"].is("message-start") || bytes.Contains(o["event_type"].raw(), []byte("-")) || o["finish_reason"] != nil && whole
	},
	asks:      func(has func(string) bool) bool { return has("message") || has("messages") && has("model") },
	newReader: stateless(readCohere),
}

// readCohere reads both versions of Cohere's chat. A tool plan is reasoning.
func readCohere(_ event, v value, r *record) {
	r.id(v.get("id"))
	r.id(v.get("generation_id"))
	switch string(v.get("event_type").raw()) {
	case "stream-start":
		return
	case "text-generation":
		r.text(Content, v, "text")
		return
	case "tool-calls-chunk":
		delta := v.get("tool_call_delta")
		r.text(Reasoning, v, "text")
		r.text(ToolCall, delta, "name")
		r.text(ToolCall, delta, "parameters")
		return
	case "tool-calls-generation":
		if r.observation.ChunksOf(ToolCall) == 0 { // else it repeats the chunks
			r.text(Reasoning, v, "text")
			r.text(ToolCall, v, "tool_calls", "*", "name")
		}
		return
	case "stream-end":
		response := v.get("response")
		r.finish(0, v.get("finish_reason"))
		readCohereUsage(response.get("meta"), r)
		r.end()
		return
	case "":
	default:
		return // such as a citation
	}
	delta := v.get("delta")
	message := delta.get("message")
	switch string(v.get("type").raw()) {
	case "content-start", "content-delta":
		r.text(Content, message, "content", "text")
		r.text(Reasoning, message, "content", "thinking")
	case "tool-plan-delta":
		r.text(Reasoning, message, "tool_plan")
	case "tool-call-start", "tool-call-delta":
		readFunction(message.path("tool_calls", "function"), r)
	case "message-end":
		r.finish(0, delta.get("finish_reason"))
		readCohereUsage(delta.get("usage"), r)
		if delta.get("error").hasText() {
			r.fail("")
		}
		r.end()
	case "":
		readCohereAnswer(v, r)
	}
}

// readCohereAnswer reads an answer that is one document.
func readCohereAnswer(v value, r *record) {
	message := v.get("message")
	r.text(Content, v, "text")
	r.text(Reasoning, message, "tool_plan")
	r.text(Content, message, "content", "*", "text")
	r.text(Reasoning, message, "content", "*", "thinking")
	for call := range message.get("tool_calls").elements {
		readFunction(call.get("function"), r)
	}
	r.text(ToolCall, v, "tool_calls", "*", "name")
	r.finish(0, v.get("finish_reason"))
	readCohereUsage(v.get("usage"), r)
	readCohereUsage(v.get("meta"), r)
	r.end()
}

// readCohereUsage reads the tokens that were processed, or those that are billed.
func readCohereUsage(usage value, r *record) {
	u := readUsage(usage.get("tokens"))
	if !u.Output.Known {
		u = readUsage(usage.get("billed_units"))
	}
	setCount(&u.CacheRead, usage.get("cached_tokens"))
	if u != (Usage{}) {
		r.usage(u)
	}
}
