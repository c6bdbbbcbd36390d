// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "time"

// BedrockConverse is the format of Bedrock's Converse API.
const BedrockConverse Format = "bedrock_converse"

var bedrockConverse = &answerFormat{
	name:     BedrockConverse,
	provider: "aws.bedrock",
	paths: []pathRule{
		{suffix: "/converse-stream", model: bedrockModel, streams: true},
		{suffix: "/converse", model: bedrockModel, unary: true},
	},
	marks: map[string]func(value) bool{
		"messageStart": anyValue, "contentBlockStart": anyValue, "contentBlockDelta": anyValue, "stopReason": anyValue,
	},
	newReader: stateless(readBedrockConverse),
	normalise: addCached,
}

// readBedrockConverse reads the Converse API: one frame per event, whose type is a frame
// header, or a whole answer. Models that are invoked with this format wrap the event in
// an object of that name.
func readBedrockConverse(e event, v value, r *record) {
	switch string(e.name) {
	case "contentBlockStart", "contentBlockDelta", "messageStop", "metadata":
		readConverseEvent(e.name, v, r)
		return
	case "messageStart":
		return
	}
	for name, m := range v.members {
		switch string(name) {
		case "output":
			for block := range m.path("message", "content").elements {
				readConverseBlock(block, r)
			}
			r.end()
		case "stopReason":
			r.finish(0, m)
		case "usage", "metrics":
			readConverseEvent([]byte("metadata"), v, r)
		default:
			readConverseEvent(name, m, r)
		}
	}
}

func readConverseEvent(name []byte, v value, r *record) {
	switch string(name) {
	case "contentBlockStart":
		readConverseBlock(v.get("start"), r)
	case "contentBlockDelta":
		readConverseBlock(v.get("delta"), r)
	case "messageStop":
		r.finish(0, v.get("stopReason"))
		r.end()
	case "metadata":
		if usage := v.get("usage"); usage.isObject() {
			r.usage(readUsage(usage))
		}
		setDuration(&r.observation.Timings.Total, v.path("metrics", "latencyMs"), time.Millisecond)
	}
}

// readConverseBlock reads a block, or the start or delta of one.
func readConverseBlock(block value, r *record) {
	for name, m := range block.members {
		switch string(name) {
		case "text":
			r.text(Content, m)
		case "reasoningContent":
			r.text(Reasoning, m, "text")
			r.text(Reasoning, m, "reasoningText", "text")
			if m.get("redactedContent").hasText() {
				r.token(Reasoning)
			}
		case "citationsContent":
			r.text(Content, m, "content", "*", "text")
		case "toolUse":
			r.text(ToolCall, m, "name")
			r.text(ToolCall, m, "input")
		}
	}
}
