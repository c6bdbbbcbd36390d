// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

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
		r.tokenIf(Content, delta)
	case "response.refusal.delta":
		r.tokenIf(Refusal, delta)
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta",
		"response.reasoning.delta", "response.reasoning_summary.delta": // of earlier versions
		r.tokenIf(Reasoning, delta)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta",
		"response.mcp_call_arguments.delta", "response.code_interpreter_call_code.delta":
		r.tokenIf(ToolCall, delta)
	case "response.output_item.added":
		if isNamedCall(item.get("type").raw()) {
			r.tokenIf(ToolCall, item.get("name"))
		}
	}
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
// reached a limit. The status of a replayed response is not that of the reading.
func readStatus(status value, r *record) {
	if r.observation.Replayed {
		return
	}
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
			for part := range item.get("content").elements {
				r.tokenIf(Content, part.get("text"))
				r.tokenIf(Refusal, part.get("refusal"))
			}
		case string(kind) == "reasoning":
			for _, list := range [...]string{"content", "summary"} {
				for part := range item.get(list).elements {
					r.tokenIf(Reasoning, part.get("text"))
				}
			}
		case isNamedCall(kind):
			r.tokenIf(ToolCall, item.get("name"))
		case string(kind) == "code_interpreter_call":
			r.tokenIf(ToolCall, item.get("code"))
		}
	}
}

// readOpenAIRealtime reads the messages of one response of the Realtime API.
func readOpenAIRealtime(_ event, v value, r *record) {
	kind := v.get("type").raw()
	switch string(kind) {
	case "response.text.delta", "response.audio_transcript.delta", "response.output_audio_transcript.delta":
		r.tokenIf(Content, v.get("delta"))
	case "response.done":
		response := v.get("response")
		r.usage(readUsage(response.get("usage")))
		r.id(response.get("id"))
		r.finish(0, response.get("status"))
		if failure := response.path("status_details", "error"); failure.isObject() {
			r.fail(errorType(failure).name())
		}
		readStatus(response.get("status"), r)
		r.end()
	case "response.created":
		r.id(v.path("response", "id"))
	default:
		readResponseEvent(kind, v.get("item"), v.get("delta"), r)
	}
}

// readOpenAIAssistants reads the run of an assistant.
func readOpenAIAssistants(e event, v value, r *record) {
	switch string(e.name) {
	case "thread.message.delta":
		for part := range v.path("delta", "content").elements {
			r.tokenIf(Content, part.path("text", "value"))
		}
	case "thread.run.created", "thread.run.queued", "thread.run.in_progress":
		r.model(v.get("model"))
		r.id(v.get("id"))
	case "thread.run.completed", "thread.run.incomplete", "thread.run.failed", "thread.run.cancelled",
		"thread.run.expired", "thread.run.requires_action":
		readResponse(v, r)
		r.finish(0, v.get("status"))
		if failure := v.get("last_error"); failure.isObject() {
			r.fail(errorType(failure).name())
		}
	}
}
