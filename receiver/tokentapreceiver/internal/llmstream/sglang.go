// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "time"

// SGLang is the own format of SGLang. It shares its path with TGI.
const SGLang Format = "sglang"

var sgLang = &answerFormat{
	name:       SGLang,
	marks:      map[string]func(value) bool{"meta_info": anyValue},
	newReader:  newSGLang,
	finishEnds: true,
}

// newSGLang returns a reader of SGLang's own format. Its text is cumulative unless the
// server was started otherwise, so that an event has tokens if its choice's text grew,
// or is another than a longer one. A server without a tokenizer sends token IDs instead.
func newSGLang() eventReader {
	var lengths [maxChoices]int
	var totals [maxChoices]int64 // of token IDs
	return func(_ event, v value, r *record) {
		r.choice()
		meta := v.get("meta_info")
		index := indexOf(v, 0)
		if text := v.get("text"); text.isString() {
			if text.hasText() && (len(text) != lengths[index] || grew(meta, r)) {
				r.token(Content)
			}
			lengths[index] = len(text)
		} else if ids := v.get("output_ids"); ids.len() > 0 {
			total, ok := meta.get("completion_tokens").count()
			if !ok {
				total = totals[index] + ids.len()
			}
			if total > totals[index] {
				r.token(Content)
				r.count(total - totals[index])
			}
			totals[index] = total
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
