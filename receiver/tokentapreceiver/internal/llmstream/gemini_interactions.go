// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// GeminiInteractions is the format of Gemini's Interactions API.
const GeminiInteractions Format = "gemini_interactions"

var geminiInteractions = &answerFormat{
	name:     GeminiInteractions,
	provider: "gcp.gemini",
	paths: []pathRule{
		{suffix: "/interactions", operation: operationGenerate},
		{within: "/interactions/", replays: true, operation: operationGenerate},
	},
	marks:     map[string]func(value) bool{"interaction": anyValue, "steps": anyValue},
	hints:     []string{"event_type"},
	shape:     func(first firstObject) bool { return first.begins("event_type", "interaction.") },
	newReader: stateless(readGeminiInteractions),
	normalise: addThoughts,
}

// readGeminiInteractions reads the Interactions API: steps by event type, or a whole
// interaction.
func readGeminiInteractions(_ event, v value, r *record) {
	switch kind := v.get("event_type"); string(kind.raw()) {
	case "step.delta", "content.delta":
		readInteractionContent(v.get("delta"), r)
	case "step.start", "content.start":
		step := v.get("step")
		r.text(ToolCall, step, "name")
		readInteractionStep(step, r)
	case "interaction.completed", "interaction.complete", "interaction.failed", "interaction.cancelled":
		readInteraction(v.get("interaction"), r)
		r.end()
	case "":
		readInteraction(v, r)
		for _, list := range [...]string{"outputs", "steps"} {
			for output := range v.get(list).elements {
				readInteractionStep(output, r)
			}
		}
		r.end()
	default:
		readInteraction(v.get("interaction"), r)
	}
	if usage := v.path("metadata", "usage"); usage.isObject() {
		r.usage(readUsage(usage))
	}
}

// readInteractionStep reads a whole step, or the first part of one. What the user or a tool
// contributed was not generated.
func readInteractionStep(step value, r *record) {
	if kind := step.get("type").raw(); string(kind) == "user_input" || bytes.HasSuffix(kind, []byte("_result")) {
		return
	}
	readInteractionContent(step, r)
	for content := range step.get("content").elements {
		readInteractionContent(content, r)
	}
}

func readInteractionContent(content value, r *record) {
	switch string(content.get("type").raw()) {
	case "text":
		r.text(Content, content, "text")
	case "thought_summary":
		r.text(Reasoning, content, "content", "text")
	case "thought":
		r.text(Reasoning, content, "summary", "*", "text")
	case "function_call":
		r.text(ToolCall, content, "name")
	case "arguments", "arguments_delta":
		r.text(ToolCall, content, "arguments")
		r.text(ToolCall, content, "partial_arguments")
	}
}

func readInteraction(interaction value, r *record) {
	r.model(interaction.get("model"))
	r.id(interaction.get("id"))
	if usage := interaction.get("usage"); usage.isObject() {
		r.usage(readUsage(usage))
	}
	if status := interaction.get("status"); status != nil && !status.is("in_progress") {
		r.finish(0, status)
	}
}
