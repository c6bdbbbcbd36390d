// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "encoding/base64"

// BedrockInvoke is the format of Bedrock's InvokeModel.
const BedrockInvoke Format = "bedrock_invoke"

var bedrockInvoke = &answerFormat{
	name:     BedrockInvoke,
	provider: "aws.bedrock",
	paths: []pathRule{
		{suffix: "/invoke-with-response-stream", within: "/model/", model: bedrockModel, streams: true},
		{suffix: "/invoke", within: "/model/", model: bedrockModel, unary: true},
	},
	newReader:  newBedrockInvoke,
	finishEnds: true,
	wraps:      true,
	normalise:  addCached, // of the models, only those of Anthropic and Amazon report cached tokens
}

// newBedrockInvoke returns a reader of InvokeModel: the model's own format, in a stream
// as base64 in the member bytes of each frame.
func newBedrockInvoke() eventReader {
	var read eventReader
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
			switch f := formatOf(e, v); {
			case f.newReader != nil:
				read = f.newReader()
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
			r.text(Content, m)
		case "outputs", "generations":
			readBedrockChoices(m, r)
		case "results":
			for result := range m.elements {
				r.text(Content, result, "outputText")
				r.finish(0, result.get("completionReason"))
				u.merge(readUsage(result))
			}
		case "completions": // of AI21's Jurassic
			for completion := range m.elements {
				r.choice()
				r.text(Content, completion, "data", "text")
				r.finish(0, completion.path("finishReason", "reason"))
			}
		case "text":
			r.text(Content, m)
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
		r.text(Content, choice, "text")
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
