// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "time"

// readOllama reads chat and generate: one line per chunk, the last with counts and
// times. The load of the model is part of the time to first token, not of the prefill.
func readOllama(_ event, v value, r *record) {
	var load, prefill, total value
	for name, m := range v.members {
		switch string(name) {
		case "model":
			r.model(m)
		case "response":
			r.tokenIf(Content, m)
		case "thinking":
			r.tokenIf(Reasoning, m)
		case "message":
			r.tokenIf(Content, m.get("content"))
			r.tokenIf(Reasoning, m.get("thinking"))
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
