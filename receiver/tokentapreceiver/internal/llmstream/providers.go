// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

// readCohere reads both versions of Cohere's chat. A tool plan is reasoning.
func readCohere(_ event, v value, r *record) {
	r.id(v.get("id"))
	r.id(v.get("generation_id"))
	switch string(v.get("event_type").raw()) {
	case "stream-start":
		return
	case "text-generation":
		r.tokenIf(Content, v.get("text"))
		return
	case "tool-calls-chunk":
		delta := v.get("tool_call_delta")
		r.tokenIf(Reasoning, v.get("text"))
		r.tokenIf(ToolCall, delta.get("name"))
		r.tokenIf(ToolCall, delta.get("parameters"))
		return
	case "tool-calls-generation":
		if r.observation.ByChannel[2] == 0 { // else it repeats the chunks
			r.tokenIf(Reasoning, v.get("text"))
			readCohereCalls(v, r)
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
		r.tokenIf(Content, message.path("content", "text"))
		r.tokenIf(Reasoning, message.path("content", "thinking"))
	case "tool-plan-delta":
		r.tokenIf(Reasoning, message.get("tool_plan"))
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
	r.tokenIf(Content, v.get("text"))
	r.tokenIf(Reasoning, message.get("tool_plan"))
	for part := range message.get("content").elements {
		r.tokenIf(Content, part.get("text"))
		r.tokenIf(Reasoning, part.get("thinking"))
	}
	for call := range message.get("tool_calls").elements {
		readFunction(call.get("function"), r)
	}
	readCohereCalls(v, r)
	r.finish(0, v.get("finish_reason"))
	readCohereUsage(v.get("usage"), r)
	readCohereUsage(v.get("meta"), r)
	r.end()
}

// readCohereCalls reads the whole tool calls of version 1.
func readCohereCalls(v value, r *record) {
	for call := range v.get("tool_calls").elements {
		r.tokenIf(ToolCall, call.get("name"))
	}
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

// readWatsonx reads IBM's text generation. The count of output tokens is cumulative,
// that of the input stands in the first event alone.
func readWatsonx(_ event, v value, r *record) {
	r.model(v.get("model_id"))
	for result := range v.get("results").elements {
		r.tokenIf(Content, result.get("generated_text"))
		u := readUsage(result)
		if u.Input.Value == 0 {
			u.Input.Known = false
		}
		r.usage(u)
		if u.Output.Known {
			r.running(u.Output.Value)
		}
		if reason := result.get("stop_reason"); !reason.is("not_finished") {
			r.finish(0, reason)
			r.end()
		}
	}
}

// readReplicate reads Replicate's streams, whose data is plain text.
func readReplicate(e event, _ value, r *record) {
	switch string(e.name) {
	case "output":
		if len(e.data) > 0 {
			r.token(Content)
		}
	case "done":
		r.end()
	}
}

// replicateEvent reports whether an event is one of Replicate's, by its name.
func replicateEvent(e event) bool { return string(e.name) == "output" }
