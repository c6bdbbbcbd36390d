// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// readLlamaCpp reads llama.cpp's own completions. An empty content means that text is
// held back for a stop word.
func readLlamaCpp(_ event, v value, r *record) {
	var stop, evaluated bool
	var u Usage
	for name, m := range v.members {
		switch string(name) {
		case "content":
			r.tokenIf(Content, m)
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

// readTGI reads the own format of Text Generation Inference: a token per event, or a
// whole answer. The last event repeats the text.
func readTGI(_ event, v value, r *record) {
	token := v.get("token")
	if token.isObject() {
		if !token.get("special").isTrue() {
			r.tokenIf(Content, token.get("text"))
		}
		r.count(1)
	}
	if text := v.get("generated_text"); text.isString() {
		if token == nil {
			r.tokenIf(Content, text)
		}
		r.end()
	}
	if details := v.get("details"); details.isObject() {
		r.finish(0, details.get("finish_reason"))
		u := readUsage(details)
		setCount(&u.Input, details.get("input_length"))
		r.usage(u)
	}
}

// newSGLang returns a reader of SGLang's own format. Its text is cumulative unless the
// server was started otherwise, so that an event has tokens if its choice's text grew,
// or is another than a longer one.
func newSGLang() reader {
	var lengths [maxChoices]int
	return func(_ event, v value, r *record) {
		r.choice()
		meta := v.get("meta_info")
		index := indexOf(v, 0)
		if text := v.get("text"); text.isString() {
			if text.hasText() && (len(text) != lengths[index] || grew(meta, r)) {
				r.token(Content)
			}
			lengths[index] = len(text)
		}
		r.seen(index)
		r.id(meta.get("id"))
		r.model(v.get("model"))
		if u := readUsage(meta); u != (Usage{}) {
			r.usage(u)
			if u.Output.Known {
				r.running(u.Output.Value)
			}
		}
		if reason := meta.get("finish_reason"); !reason.isNull() {
			if reason.isObject() {
				reason = reason.get("type")
			}
			r.finish(index, reason)
		}
		setDuration(&r.observation.Timings.Total, meta.get("e2e_latency"), time.Second)
	}
}

// grew reports whether the count of tokens grew since the last event.
func grew(meta value, r *record) bool {
	n, ok := meta.get("completion_tokens").count()
	return ok && n > r.observation.Reported.Output.Value && meta.get("finish_reason").isNull()
}

// readTriton reads Triton's generate extension, with the times of the TensorRT-LLM
// backend.
func readTriton(_ event, v value, r *record) {
	var arrival, scheduled, first, last float64
	for name, m := range v.members {
		switch string(name) {
		case "text_output":
			r.tokenIf(Content, m)
			r.end() // no event says that it is the last
		case "model_name":
			r.model(m)
		case "id":
			r.id(m)
		case "arrival_time_ns":
			arrival, _ = m.float()
		case "first_scheduled_time_ns":
			scheduled, _ = m.float()
		case "first_token_time_ns":
			first, _ = m.float()
		case "last_token_time_ns":
			last, _ = m.float()
		}
	}
	if arrival > 0 {
		t := &r.observation.Timings
		setBetween(&t.Queue, arrival, scheduled)
		setBetween(&t.Prefill, scheduled, first)
		setBetween(&t.Decode, first, last)
		setBetween(&t.FirstToken, arrival, first)
	}
}

// setBetween sets the time between two points in nanoseconds that are in order.
func setBetween(d *optional.Value[time.Duration], from, to float64) {
	if from > 0 && to >= from && to-from <= float64(maxDuration) {
		*d = optional.Of(time.Duration(to - from))
	}
}
