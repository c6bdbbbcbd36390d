// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "strings"

// AnthropicMessages is the format of the Messages API.
const AnthropicMessages Format = "anthropic_messages"

var anthropicMessages = &answerFormat{
	name:     AnthropicMessages,
	provider: "anthropic",
	paths: []pathRule{
		{suffix: "/v1/messages"},
		{suffix: ":streamRawPredict", model: vertexModel, streams: true},
		{suffix: ":rawPredict", model: vertexModel},
	},
	hints: []string{"type"},
	shape: func(first firstObject) bool {
		kind := first.hints["type"]
		return kind.is("message_start") || kind.is("message") || kind.is("completion")
	},
	newReader: stateless(readAnthropicMessages),
	normalise: addCached,
}

// vertexModel returns the model of the paths of Vertex AI.
func vertexModel(path, _ string) string {
	return segmentAfter(path[:strings.LastIndexByte(path, ':')], "/models/")
}

// readAnthropicMessages reads the Messages API, on Bedrock and Vertex as well, and the
// completions that came before it. The output count of message_start is a seed.
func readAnthropicMessages(_ event, v value, r *record) {
	var delta, block, message, usage value
	var kind value
	for name, m := range v.members {
		switch string(name) {
		case "type":
			kind = m
		case "delta":
			delta = m
		case "content_block":
			block = m
		case "message":
			message = m
		case "usage":
			usage = m
		case "completion":
			r.text(Content, m)
		}
	}
	switch string(kind.raw()) {
	case "message_start":
		r.model(message.get("model"))
		r.id(message.get("id"))
		// A gateway that retries sends a second one.
		o := &r.observation
		o.Reported, o.UsageFinal, o.seed = readUsage(message.get("usage")), false, true
	case "content_block_start":
		readAnthropicBlock(block, r)
	case "content_block_delta":
		switch string(delta.get("type").raw()) {
		case "text_delta":
			r.text(Content, delta, "text")
		case "thinking_delta":
			r.text(Reasoning, delta, "thinking")
		case "input_json_delta":
			r.text(ToolCall, delta, "partial_json")
		}
	case "message_delta":
		r.usage(readUsage(usage))
		r.finish(0, delta.get("stop_reason"))
	case "message_stop":
		r.end()
	case "message":
		r.model(v.get("model"))
		r.id(v.get("id"))
		r.finish(0, v.get("stop_reason"))
		r.usage(readUsage(usage))
		for block := range v.get("content").elements {
			readAnthropicBlock(block, r)
		}
		r.end()
	case "completion":
		r.model(v.get("model"))
		r.id(v.get("id"))
		if reason := v.get("stop_reason"); reason.hasText() {
			r.finish(0, reason)
			r.end()
		}
	}
}

func readAnthropicBlock(block value, r *record) {
	switch string(block.get("type").raw()) {
	case "text":
		r.text(Content, block, "text")
	case "thinking":
		r.text(Reasoning, block, "thinking")
	case "redacted_thinking":
		r.token(Reasoning)
	case "tool_use", "server_tool_use", "mcp_tool_use":
		r.text(ToolCall, block, "name")
	}
}
