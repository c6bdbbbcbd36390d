// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

// MistralConversations is the format of Mistral's Conversations API.
const MistralConversations Format = "mistral_conversations"

var mistralConversations = &answerFormat{
	name:     MistralConversations,
	provider: "mistral_ai",
	paths: []pathRule{ // which OpenAI has, too, for conversations without answers
		{suffix: "/v1/conversations", shared: true},
		{within: "/v1/conversations/", shared: true},
	},
	hints: []string{"object", "type"},
	shape: func(first firstObject) bool {
		return first.begins("type", "conversation.response.") || first.hints["object"].is("conversation.response")
	},
	asks:      func(has func(string) bool) bool { return has("inputs") },
	newReader: stateless(readMistralConversations),
}

// readMistralConversations reads events by type, or a whole answer. What a tool returned was not
// generated.
func readMistralConversations(_ event, v value, r *record) {
	r.model(v.get("model"))
	r.id(v.get("conversation_id"))
	switch string(v.get("type").raw()) {
	case "message.output.delta":
		readMistralContent(v.get("content"), r)
	case "function.call.delta", "tool.execution.started", "tool.execution.delta":
		readFunction(v, r)
	case "conversation.response.done":
		r.usage(readUsage(v.get("usage")))
		r.end()
	case "conversation.response.error":
		r.fail(v.get("code").name())
	case "":
		if !v.get("object").is("conversation.response") {
			return
		}
		for entry := range v.get("outputs").elements {
			r.model(entry.get("model"))
			readMistralContent(entry.get("content"), r)
			readFunction(entry, r)
		}
		r.usage(readUsage(v.get("usage")))
		r.end()
	}
}

// readMistralContent reads a text, a part, or a list of parts.
func readMistralContent(content value, r *record) {
	r.text(Content, content)
	if content.isObject() {
		readContentPart(content, r)
	}
	for part := range content.elements {
		readContentPart(part, r)
	}
}
