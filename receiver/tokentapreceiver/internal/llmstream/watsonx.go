// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

// Watsonx is the format of IBM watsonx.ai.
const Watsonx Format = "watsonx"

var watsonx = &answerFormat{
	name:     Watsonx,
	provider: "ibm.watsonx.ai",
	paths: []pathRule{
		{suffix: "/text/generation_stream", streams: true, operation: operationCompletion},
		{suffix: "/generation/text_stream", streams: true, operation: operationCompletion},
		{suffix: "/text/chat_stream", streams: true, operation: operationCompletion},
	},
	marks:     map[string]func(value) bool{"results": hasGeneratedText},
	newReader: stateless(readWatsonx),
}

func hasGeneratedText(results value) bool {
	return results.any(func(result value) bool { return result.get("generated_text").isString() })
}

// readWatsonx reads IBM's text generation. The count of output tokens is cumulative,
// that of the input stands in the first event alone.
func readWatsonx(_ event, v value, r *record) {
	r.model(v.get("model_id"))
	for result := range v.get("results").elements {
		r.text(Content, result, "generated_text")
		u := readUsage(result)
		if u.Input.Value == 0 {
			u.Input.Known = false
		}
		r.usage(u)
		if u.Output.Known {
			r.running(u.Output.Value)
		}
		if reason := result.get("stop_reason"); !reason.is("not_finished") {
			r.finish(0, reason)
			r.end()
		}
	}
}
