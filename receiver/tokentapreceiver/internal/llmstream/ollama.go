// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "time"

// Ollama is the own format of Ollama.
const Ollama Format = "ollama"

var ollama = &answerFormat{
	name: Ollama,
	paths: []pathRule{
		{suffix: "/api/chat", streams: true, shared: true},
		{suffix: "/api/generate", streams: true, shared: true, operation: operationCompletion},
	},
	hints: []string{"done", "message", "response"},
	guess: func(first firstObject) bool {
		return first.hints["done"] != nil && (first.hints["message"].isObject() || first.hints["response"].isString())
	},
	asks:      func(has func(string) bool) bool { return has("model") && (has("messages") || has("prompt")) },
	newReader: stateless(readOllama),
}

// readOllama reads chat and generate: one line per chunk, the last with counts and
// times. The load of the model is part of the time to first token, not of the prefill.
func readOllama(_ event, v value, r *record) {
	var load, prefill, total value
	for name, m := range v.members {
		switch string(name) {
		case "model":
			r.model(m)
		case "response":
			r.text(Content, m)
		case "thinking":
			r.text(Reasoning, m)
		case "message":
			r.text(Content, m, "content")
			r.text(Reasoning, m, "thinking")
			for call := range m.get("tool_calls").elements {
				readFunction(call.get("function"), r)
			}
		case "logprobs":
			r.count(m.len())
		case "done":
			if m.isTrue() {
				r.end()
				r.usage(readUsage(v))
			}
		case "done_reason":
			r.finish(0, m)
		case "load_duration":
			load = m
		case "prompt_eval_duration":
			prefill = m
		case "total_duration":
			total = m
		case "eval_duration":
			setDuration(&r.observation.Timings.Decode, m, time.Nanosecond)
		}
	}
	t := &r.observation.Timings
	setDuration(&t.Prefill, prefill, time.Nanosecond)
	setDuration(&t.Total, total, time.Nanosecond)
	if setDuration(&t.FirstToken, load, time.Nanosecond); t.FirstToken.Known && t.Prefill.Known && load != nil {
		t.FirstToken.Value += t.Prefill.Value
	}
}
