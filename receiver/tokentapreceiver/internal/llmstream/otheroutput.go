// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// holdsOther reports whether a part of an answer holds output that is not text: an image, audio, or an item such as a
// tool, computer or approval call. It looks for names and types that services share: they add tools all the time.
// Objects that repeat the request are left out: a list of tools is no call of one.
func holdsOther(v value) bool { return holdsOtherAt(v, maxDepth) }

// maxDepth bounds the search.
const maxDepth = 12

func holdsOtherAt(v value, depth int) bool {
	if depth == 0 {
		return false
	}
	for element := range v.elements {
		if holdsOtherAt(element, depth-1) {
			return true
		}
	}
	if object := v.get("object"); object.is("response") || object.is("realtime.response") {
		return holdsOtherAt(v.get("output"), depth-1)
	}
	for name, m := range v.members {
		switch string(name) {
		case "inlineData", "inline_data", "fileData", "file_data", "image", "images", "image_url", "b64_json", "partial_image_b64",
			"audio", "audio_url", "video", "video_url", "functionCall", "function_call", "tool_calls", "toolCalls", "tool_call", "toolCall", "toolUse", "executableCode",
			"codeExecutionResult":
			if !isEmpty(m) {
				return true
			}
		case "type":
			if isOtherType(m.raw()) {
				return true
			}
		case "modality":
			if m.is("audio") || m.is("image") || m.is("video") {
				return true
			}
		case "session", "tools", "tool_choice", "request", "input", "instructions", "metadata", "usage", "usageMetadata", "text", "prompt", "error":
		default:
			if holdsOtherAt(m, depth-1) {
				return true
			}
		}
	}
	return false
}

// isOtherType reports whether the type of an event, a content part or an item is that of output without text.
func isOtherType(kind []byte) bool {
	for _, word := range [...]string{"_call", "tool", "image", "audio", "video", "approval", "computer"} {
		if bytes.Contains(kind, []byte(word)) {
			return true
		}
	}
	return false
}

// isEmpty reports whether a value is null, false, 0, or has nothing in it.
func isEmpty(v value) bool {
	switch {
	case v.isNull(), v.isFalse(), v.is(""), len(v) == 1 && v[0] == '0':
		return true
	case v[0] == '{' || v[0] == '[':
		return len(bytes.TrimSpace(v[1:len(v)-1])) == 0
	default:
		return false
	}
}
