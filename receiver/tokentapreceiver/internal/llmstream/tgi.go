// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "github.com/tokenpulse/tokenpulse/internal/optional"

// TGI is the own format of Text Generation Inference.
const TGI Format = "tgi"

var tgi = &answerFormat{
	name: TGI,
	paths: []pathRule{
		{suffix: "/generate", shared: true, operation: operationCompletion},
		{suffix: "/generate_stream", streams: true, shared: true, operation: operationCompletion},
		{suffix: "/invocations", shared: true, operation: operationCompletion},
		{suffix: "/", shared: true, operation: operationCompletion},
	},
	marks: map[string]func(value) bool{"generated_text": anyValue, "token": value.isObject, "details": value.isObject},
	asks: func(has func(string) bool) bool {
		return has("inputs") || has("input_ids") || has("sampling_params") || has("prompt") && has("max_tokens")
	},
	newReader: stateless(readTGI),
}

// readTGI reads the own format of Text Generation Inference: a token per event, or a
// whole answer. The last event repeats the text. LightLLM says at the top level that it finished.
func readTGI(_ event, v value, r *record) {
	token := v.get("token")
	if token.isObject() {
		if !token.get("special").isTrue() {
			r.text(Content, token, "text")
		}
		r.count(1)
		readLightLLMUsage(token, r)
	}
	if text := v.get("generated_text"); text.isString() {
		if token == nil {
			r.text(Content, text)
		}
		r.end()
	} else if len(text) > 0 && text[0] == '[' {
		readLightLLM(v, text, r)
	}
	if details := v.get("details"); details.isObject() {
		r.finish(0, details.get("finish_reason"))
		u := readUsage(details)
		setCount(&u.Input, details.get("input_length"))
		r.usage(u)
	}
	if v.get("finished").isTrue() {
		r.finish(0, v.get("finish_reason"))
		r.end()
	}
}

// readLightLLM reads a whole answer of LightLLM, which has a list of texts. The other members
// are lists only if there are several.
func readLightLLM(v, texts value, r *record) {
	for text := range texts.elements {
		r.choice()
		r.text(Content, text)
	}
	reasons := v.get("finish_reason")
	r.finish(0, reasons)
	choice := 0
	for reason := range reasons.elements {
		r.finish(choice, reason)
		choice++
	}
	readLightLLMUsage(v, r)
	r.end()
}

// readLightLLMUsage reads the usage of a whole answer, or the running one of a token.
func readLightLLMUsage(v value, r *record) {
	var u Usage
	output := v.get("count_output_tokens")
	setCount(&u.Output, output)
	for part := range output.elements {
		n, _ := part.count()
		u.Output = optional.Of(u.Output.Value + n)
	}
	if u.Output.Known {
		setCount(&u.Input, v.get("prompt_tokens"))
		r.usage(u)
	}
}
