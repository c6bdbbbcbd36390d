// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// readGemini reads GenerateContentResponse objects. The usage is a running total.
func readGemini(_ event, v value, r *record) {
	var usage value
	position := 0
	for name, m := range v.members {
		switch string(name) {
		case "candidates":
			for candidate := range m.elements {
				index := indexOf(candidate, position)
				position++
				r.choice()
				r.seen(index)
				readGeminiParts(candidate.get("content"), r)
				if reason := candidate.get("finishReason"); reason.name() != "" {
					r.finish(index, reason)
					r.end()
				}
			}
		case "promptFeedback":
			if reason := m.get("blockReason"); reason.name() != "" {
				r.finish(0, reason)
				r.end()
			}
		case "usageMetadata":
			usage = m
		case "modelVersion":
			r.model(m)
		case "responseId":
			r.id(m)
		}
	}
	u := readUsage(usage)
	if u != (Usage{}) {
		r.usage(u)
	}
	// Reasoning and output are counted apart.
	if u.Output.Known && r.channels != 0 && !r.showedReasoning() {
		r.running(u.Output.Value)
	}
}

// readGeminiParts marks the channels of a content's parts.
func readGeminiParts(content value, r *record) {
	for part := range content.get("parts").elements {
		var text, call, code value
		channel := Content
		for name, m := range part.members {
			switch string(name) {
			case "text":
				text = m
			case "thought":
				if m.isTrue() {
					channel = Reasoning
				}
			case "functionCall":
				call = m
			case "executableCode":
				code = m
			}
		}
		r.tokenIf(channel, text)
		r.tokenIf(ToolCall, code.get("code"))
		readGeminiCall(call, r)
	}
}

// readGeminiCall reads a function call. Empty calls and arguments are closing marks.
func readGeminiCall(call value, r *record) {
	for name, m := range call.members {
		switch string(name) {
		case "name":
			r.tokenIf(ToolCall, m)
		case "args":
			for range m.members {
				r.token(ToolCall)
				break
			}
		case "partialArgs":
			for argument := range m.elements {
				r.tokenIf(ToolCall, argument.get("stringValue"))
				if argument.get("numberValue") != nil || argument.get("boolValue") != nil {
					r.token(ToolCall)
				}
			}
		}
	}
}

// readGeminiLive reads the messages of a Live connection.
func readGeminiLive(_ event, v value, r *record) {
	for name, m := range v.members {
		switch string(name) {
		case "serverContent":
			readGeminiParts(m.get("modelTurn"), r)
			r.tokenIf(Content, m.path("outputTranscription", "text"))
			if m.get("turnComplete").isTrue() {
				r.finish(0, value(`"turnComplete"`))
				r.end()
			}
			if m.get("interrupted").isTrue() {
				r.finish(0, value(`"interrupted"`))
			}
		case "toolCall":
			for call := range m.get("functionCalls").elements {
				readGeminiCall(call, r)
			}
			r.finish(0, value(`"toolCall"`))
			r.end() // what follows answers the client's toolResponse
		case "usageMetadata":
			r.usage(readUsage(m))
		}
	}
}

// readGeminiInteractions reads the Interactions API: steps by event type, or a whole
// interaction.
func readGeminiInteractions(_ event, v value, r *record) {
	switch kind := v.get("event_type"); string(kind.raw()) {
	case "step.delta", "content.delta":
		readInteractionContent(v.get("delta"), r)
	case "step.start", "content.start":
		step := v.get("step")
		r.tokenIf(ToolCall, step.get("name"))
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
		r.tokenIf(Content, content.get("text"))
	case "thought_summary":
		r.tokenIf(Reasoning, content.path("content", "text"))
	case "thought":
		for part := range content.get("summary").elements {
			r.tokenIf(Reasoning, part.get("text"))
		}
	case "function_call":
		r.tokenIf(ToolCall, content.get("name"))
	case "arguments", "arguments_delta":
		r.tokenIf(ToolCall, content.get("arguments"))
		r.tokenIf(ToolCall, content.get("partial_arguments"))
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
