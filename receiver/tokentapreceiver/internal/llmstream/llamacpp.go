// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

// LlamaCpp is the format of llama.cpp's own completions.
const LlamaCpp Format = "llamacpp"

var llamaCpp = &answerFormat{
	name: LlamaCpp,
	paths: []pathRule{
		{suffix: "/completion", shared: true, operation: operationCompletion},
		{suffix: "/infill", shared: true, operation: operationCompletion},
	},
	hints:     []string{"content", "stop"},
	guess:     func(first firstObject) bool { return first.hints["content"].isString() && first.hints["stop"] != nil },
	asks:      func(has func(string) bool) bool { return has("prompt") || has("input_prefix") },
	newReader: stateless(readLlamaCpp),
}

// readLlamaCpp reads llama.cpp's own completions. An empty content means that text is
// held back for a stop word.
func readLlamaCpp(_ event, v value, r *record) {
	var stop, evaluated bool
	var u Usage
	for name, m := range v.members {
		switch string(name) {
		case "content":
			r.text(Content, m)
		case "model":
			r.model(m)
		case "tokens":
			r.count(m.len())
		case "stop":
			stop = m.isTrue()
		case "stop_type":
			if !m.is("none") {
				r.finish(0, m)
			}
		case "stopped_eos", "stopped_word", "stopped_limit":
			if m.isTrue() {
				r.finish(0, value(`"`+string(name[len("stopped_"):])+`"`))
			}
		case "timings":
			r.observation.Timings.llamaCpp(m)
		case "tokens_predicted":
			setCount(&u.Output, m)
			evaluated = evaluated || u.Output.Value > 0
		case "tokens_evaluated":
			setCount(&u.Input, m)
		}
	}
	if u.Output.Known && evaluated {
		r.running(u.Output.Value)
	}
	if stop {
		r.usage(u)
		r.end()
	}
}
