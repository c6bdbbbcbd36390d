// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

// Gemini is the format of Gemini's generateContent.
const Gemini Format = "gemini"

var gemini = &answerFormat{
	name:     Gemini,
	provider: "gcp.gemini",
	paths: []pathRule{
		{suffix: ":streamGenerateContent", model: modelWithVerb, streams: true, operation: operationGenerate},
		{suffix: ":generateContent", model: modelWithVerb, unary: true, operation: operationGenerate},
	},
	marks:        map[string]func(value) bool{"candidates": anyValue, "promptFeedback": anyValue, "usageMetadata": anyValue},
	newReader:    stateless(readGemini),
	arrayStreams: true,
	normalise:    addThoughts,
}

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
		var text, call, code, data value
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
			case "inlineData":
				data = m
			}
		}
		r.text(channel, text)
		r.text(ToolCall, code, "code")
		readGeminiCall(call, r)
		readInlineAudio(data, r)
	}
}

// readInlineAudio reads data of a part, if it is audio.
func readInlineAudio(data value, r *record) {
	if mediaType := data.get("mimeType").raw(); isAudioType(mediaType) {
		r.byteRate = mediaTypeRate(mediaType)
		r.audio(data.get("data"))
	}
}

// readGeminiCall reads a function call. Empty calls and arguments are closing marks.
func readGeminiCall(call value, r *record) {
	for name, m := range call.members {
		switch string(name) {
		case "name":
			r.text(ToolCall, m)
		case "args":
			for range m.members {
				r.token(ToolCall)
				break
			}
		case "partialArgs":
			for argument := range m.elements {
				r.text(ToolCall, argument, "stringValue")
				if argument.get("numberValue") != nil || argument.get("boolValue") != nil {
					r.token(ToolCall)
				}
			}
		}
	}
}
