// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

// VLLM is the own format of vLLM, whose requests and answers hold token IDs instead of text.
const VLLM Format = "vllm"

var vLLM = &answerFormat{
	name:  VLLM,
	paths: []pathRule{{suffix: "/inference/v1/generate", operation: operationCompletion}},
	hints: []string{"choices"},
	guess: func(first firstObject) bool {
		return first.hints["choices"].any(func(choice value) bool {
			return len(choice.get("token_ids")) > 0 && !isTextChoice(choice) && !isChatChoice(choice)
		})
	},
	newReader:  stateless(readVLLM),
	finishEnds: true,
}

// readVLLM reads the token IDs of a chunk or of a whole answer.
func readVLLM(_ event, v value, r *record) {
	read, finished := readChoices(v.get("choices"), r, func(choice value) value {
		if ids := choice.get("token_ids").len(); ids > 0 {
			r.token(Content)
			r.count(ids)
		}
		return choice.get("finish_reason")
	})
	r.id(v.get("request_id"))
	r.model(v.get("model"))
	readChatUsage(v.get("usage"), finished, read, r)
	readVLLMMetrics(v.get("metrics"), &r.observation)
}
