// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// OpenAIResponses is the format of the Responses API, over HTTP and WebSocket.
const OpenAIResponses Format = "openai_responses"

var openAIResponses = &answerFormat{
	name:     OpenAIResponses,
	provider: "openai",
	paths:    []pathRule{{suffix: "/responses"}, {within: "/responses/", replays: true}},
	hints:    []string{"object", "type"},
	shape: func(first firstObject) bool {
		return first.hints["object"].is("response") || first.begins("type", "response.") && !openAIRealtime.shape(first)
	},
	newReader:  stateless(readOpenAIResponses),
	connection: openAIConnection,
}

// readOpenAIResponses reads the Responses API: events by type, or a whole response.
func readOpenAIResponses(_ event, v value, r *record) {
	var kind, item, response, delta, logprobs value
	for name, m := range v.members {
		switch string(name) {
		case "type":
			kind = m
		case "item":
			item = m
		case "response":
			response = m
		case "delta":
			delta = m
		case "logprobs":
			logprobs = m
		case "object":
			if m.is("response") {
				readResponse(v, r)
				readResponseOutput(v, r)
				return
			}
		}
	}
	readResponseEvent(kind.raw(), item, delta, r)
	r.count(logprobs.len())
	if response.isObject() {
		readResponse(response, r)
	}
}

// readResponseEvent marks the tokens of an event of the Responses or Realtime API.
func readResponseEvent(kind []byte, item, delta value, r *record) {
	switch string(kind) {
	case "response.output_text.delta":
		r.text(Content, delta)
	case "response.refusal.delta":
		r.text(Refusal, delta)
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta",
		"response.reasoning.delta", "response.reasoning_summary.delta": // of earlier versions
		r.text(Reasoning, delta)
	case "response.audio.transcript.delta":
		r.text(Content, delta)
	case "response.output_audio.delta", "response.audio.delta":
		r.audio(delta)
	case "response.output_item.added":
		if isNamedCall(item.get("type").raw()) {
			r.text(ToolCall, item, "name")
		}
	default:
		if isToolDelta(kind) {
			r.text(ToolCall, delta)
		}
	}
}

// isToolDelta reports whether an event may hold a part of a tool call: tools keep being added. Audio and images are
// encoded, and what a tool returned was not generated.
func isToolDelta(kind []byte) bool {
	if !bytes.HasPrefix(kind, []byte("response.")) || !bytes.HasSuffix(kind, []byte(".delta")) {
		return false
	}
	for _, other := range [...]string{"audio", "image", "_output"} {
		if bytes.Contains(kind, []byte(other)) {
			return false
		}
	}
	return true
}

func isNamedCall(kind []byte) bool {
	return string(kind) == "function_call" || string(kind) == "custom_tool_call" || string(kind) == "mcp_call"
}

// readResponse reads a response object. A terminal status is the finish reason, or why
// the response is incomplete.
func readResponse(response value, r *record) {
	var status, reason, usage, failure value
	for name, m := range response.members {
		switch string(name) {
		case "model":
			r.model(m)
		case "id":
			r.id(m)
		case "status":
			status = m
		case "incomplete_details":
			reason = m.get("reason")
		case "usage":
			usage = m
		case "metrics":
			readVLLMMetrics(m, &r.observation)
		case "error":
			failure = m
		}
	}
	if usage.isObject() {
		r.usage(readUsage(usage))
		r.observation.Timings.usageTimings(usage)
	}
	if failure.isObject() {
		r.fail(errorType(failure).name())
	}
	switch string(status.raw()) {
	case "completed", "incomplete", "failed", "cancelled":
		readStatus(status, r)
		if reason.hasText() {
			status = reason
		}
		r.finish(0, status)
		r.end()
	}
}

// readStatus reads the terminal status of a response. An incomplete response still ended: it
// reached a limit.
func readStatus(status value, r *record) {
	switch string(status.raw()) {
	case "cancelled":
		r.observation.Cancelled = true
	case "failed":
		r.fail("") // keeps the kind of an error
	}
}

// readResponseOutput marks the channels of a whole response.
func readResponseOutput(response value, r *record) {
	for item := range response.get("output").elements {
		kind := item.get("type").raw()
		switch {
		case string(kind) == "message":
			r.text(Content, item, "content", "*", "text")
			r.text(Refusal, item, "content", "*", "refusal")
		case string(kind) == "reasoning":
			r.text(Reasoning, item, "content", "*", "text")
			r.text(Reasoning, item, "summary", "*", "text")
		case isNamedCall(kind):
			r.text(ToolCall, item, "name")
		case string(kind) == "code_interpreter_call":
			r.text(ToolCall, item, "code")
		case string(kind) == "apply_patch_call":
			r.text(ToolCall, item, "operation", "diff")
		case string(kind) == "shell_call":
			r.text(ToolCall, item, "action", "commands", "*")
		}
	}
}
