// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// OpenAIAssistants is the format of the runs of assistants.
const OpenAIAssistants Format = "openai_assistants"

var openAIAssistants = &answerFormat{
	name:     OpenAIAssistants,
	provider: "openai",
	paths:    []pathRule{{suffix: "/runs", within: "/threads"}, {suffix: "/submit_tool_outputs", within: "/threads"}, {within: "/runs/", replays: true}},
	hints:    []string{"object"},
	shape: func(first firstObject) bool {
		return bytes.HasPrefix(first.event.name, []byte("thread.")) || first.begins("object", "thread.")
	},
	newReader: stateless(readOpenAIAssistants),
}

// readOpenAIAssistants reads the run of an assistant.
func readOpenAIAssistants(e event, v value, r *record) {
	name := e.name
	if len(name) == 0 && v.get("object").is("thread.run") { // a whole answer, or a read
		name = append([]byte("thread.run."), v.get("status").raw()...)
	}
	switch string(name) {
	case "thread.message.delta":
		r.text(Content, v, "delta", "content", "*", "text", "value")
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
