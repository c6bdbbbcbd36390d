// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "time"

// LMStudio is the own format of LM Studio.
const LMStudio Format = "lmstudio"

var lmStudio = &answerFormat{
	name:  LMStudio,
	paths: []pathRule{{suffix: "/api/v1/chat", shared: true}},
	hints: []string{"model_instance_id", "output", "type"},
	shape: func(first firstObject) bool {
		kind := first.hints["type"]
		return first.begins("type", "chat.start") || kind.is("message.delta") || kind.is("reasoning.delta") || first.hints["model_instance_id"].isString() && first.hints["output"] != nil
	},
	asks:      func(has func(string) bool) bool { return has("model") && has("input") },
	newReader: stateless(readLMStudio),
}

// readLMStudio reads events by type, the last of which repeats the whole answer, or a whole
// answer, which has no type. The calls of tools arrive whole.
func readLMStudio(_ event, v value, r *record) {
	r.model(v.get("model_instance_id"))
	switch kind := v.get("type"); string(kind.raw()) {
	case "message.delta":
		r.text(Content, v, "content")
	case "reasoning.delta":
		r.text(Reasoning, v, "content")
	case "tool_call.start", "tool_call.name":
		r.text(ToolCall, v, "tool")
		r.text(ToolCall, v, "tool_name")
	case "tool_call.arguments":
		for range v.get("arguments").members {
			r.token(ToolCall)
			break
		}
	case "chat.end":
		readLMStudioResult(v.get("result"), r)
	case "":
		for item := range v.get("output").elements {
			switch string(item.get("type").raw()) {
			case "message":
				r.text(Content, item, "content")
			case "reasoning":
				r.text(Reasoning, item, "content")
			case "tool_call":
				r.text(ToolCall, item, "tool")
			}
		}
		readLMStudioResult(v, r)
	}
}

// readLMStudioResult reads what a whole answer reports. An error without a result reports nothing.
func readLMStudioResult(result value, r *record) {
	stats := result.get("stats")
	if !stats.isObject() {
		return
	}
	u := readUsage(stats)
	setCount(&u.Reasoning, stats.get("reasoning_output_tokens"))
	r.usage(u)
	setDuration(&r.observation.Timings.FirstToken, stats.get("time_to_first_token_seconds"), time.Second)
	r.model(result.get("model_instance_id"))
	r.id(result.get("response_id"))
	r.end()
}
