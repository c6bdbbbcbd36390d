// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

// TGI is the own format of Text Generation Inference.
const TGI Format = "tgi"

var tgi = &answerFormat{
	name: TGI,
	paths: []pathRule{
		{suffix: "/generate", operation: operationCompletion},
		{suffix: "/generate_stream", streams: true, operation: operationCompletion},
		{suffix: "/invocations", shared: true, operation: operationCompletion},
		{suffix: "/", shared: true, operation: operationCompletion},
	},
	marks:     map[string]func(value) bool{"generated_text": anyValue, "token": value.isObject, "details": value.isObject},
	newReader: stateless(readTGI),
}

// readTGI reads the own format of Text Generation Inference: a token per event, or a
// whole answer. The last event repeats the text.
func readTGI(_ event, v value, r *record) {
	token := v.get("token")
	if token.isObject() {
		if !token.get("special").isTrue() {
			r.text(Content, token, "text")
		}
		r.count(1)
	}
	if text := v.get("generated_text"); text.isString() {
		if token == nil {
			r.text(Content, text)
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
