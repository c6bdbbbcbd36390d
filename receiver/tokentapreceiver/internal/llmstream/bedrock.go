// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"encoding/base64"
	"time"
)

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
			r.tokenIf(Content, m)
		case "reasoningContent":
			r.tokenIf(Reasoning, m.get("text"))
			r.tokenIf(Reasoning, m.path("reasoningText", "text"))
			if m.get("redactedContent").hasText() {
				r.token(Reasoning)
			}
		case "citationsContent":
			for part := range m.get("content").elements {
				r.tokenIf(Content, part.get("text"))
			}
		case "toolUse":
			r.tokenIf(ToolCall, m.get("name"))
			r.tokenIf(ToolCall, m.get("input"))
		}
	}
}

// newBedrockInvoke returns a reader of InvokeModel: the model's own format, in a stream
// as base64 in the member bytes of each frame.
func newBedrockInvoke() reader {
	var read reader
	var text buffer
	return func(e event, v value, r *record) {
		if wrapped := v.get("bytes"); wrapped.isString() {
			text.reset()
			var err error
			if text.bytes, err = base64.StdEncoding.AppendDecode(text.bytes, wrapped.raw()); err != nil {
				r.observation.Unparsed.Invalid++
				return
			}
			var ok bool
			if v, ok = parse(text.bytes); !ok {
				r.observation.Unparsed.Invalid++
				return
			}
			e = event{}
			readError(e, v, 0, r)
		}
		if read == nil {
			switch format := shapeOf(e, v); {
			case format != "" && format != notLLM:
				read = newReader(format)
			case v.get("choices") != nil:
				readBedrockModel(e, v, r) // a later event shows which choices they are
			default:
				read = readBedrockModel
			}
		}
		if read != nil {
			read(e, v, r)
		}
		if metrics := v.get("amazon-bedrock-invocationMetrics"); metrics.isObject() {
			readInvocationMetrics(metrics, r)
			r.end()
		}
	}
}

// readBedrockModel reads the formats of single models: Titan, Llama, Mistral, Cohere and
// the first Claude.
func readBedrockModel(_ event, v value, r *record) {
	u := Usage{}
	for name, m := range v.members {
		switch string(name) {
		case "outputText", "generation", "completion":
			r.tokenIf(Content, m)
		case "outputs", "generations":
			readBedrockChoices(m, r)
		case "results":
			for result := range m.elements {
				r.tokenIf(Content, result.get("outputText"))
				r.finish(0, result.get("completionReason"))
				u.merge(readUsage(result))
			}
		case "completions": // of AI21's Jurassic
			for completion := range m.elements {
				r.choice()
				r.tokenIf(Content, completion.path("data", "text"))
				r.finish(0, completion.path("finishReason", "reason"))
			}
		case "text":
			r.tokenIf(Content, m)
		case "completionReason", "stop_reason", "finish_reason":
			index, _ := v.get("index").count()
			r.finish(int(min(index, maxChoices)), m)
		case "generation_token_count":
			if n, ok := m.count(); ok {
				r.running(n)
			}
		}
	}
	u.merge(readUsage(v))
	if u != (Usage{}) {
		r.usage(u)
	}
}

// readBedrockChoices reads the choices of Mistral and Cohere.
func readBedrockChoices(choices value, r *record) {
	position := 0
	for choice := range choices.elements {
		r.choice()
		r.tokenIf(Content, choice.get("text"))
		for _, name := range [...]string{"stop_reason", "finish_reason"} {
			r.finish(indexOf(choice, position), choice.get(name))
		}
		position++
	}
}

// readInvocationMetrics reads Bedrock's own counts, which are used where the model
// reports none, and its times.
func readInvocationMetrics(metrics value, r *record) {
	u := readUsage(metrics)
	o := &r.observation
	if u.Output.Known {
		if o.seed {
			o.Reported.Output = u.Output
		}
		o.UsageFinal, o.seed = true, false
	}
	o.Reported.fill(u)
	o.Timings.bedrockMetrics(metrics)
}
