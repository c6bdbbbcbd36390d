// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

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
			r.tokenIf(Content, m)
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
			r.tokenIf(Content, delta.get("text"))
		case "thinking_delta":
			r.tokenIf(Reasoning, delta.get("thinking"))
		case "input_json_delta":
			r.tokenIf(ToolCall, delta.get("partial_json"))
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
		r.tokenIf(Content, block.get("text"))
	case "thinking":
		r.tokenIf(Reasoning, block.get("thinking"))
	case "redacted_thinking":
		r.token(Reasoning)
	case "tool_use", "server_tool_use", "mcp_tool_use":
		r.tokenIf(ToolCall, block.get("name"))
	}
}
