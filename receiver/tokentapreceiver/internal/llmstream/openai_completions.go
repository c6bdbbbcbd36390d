// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

// OpenAICompletions is the format of legacy completions.
const OpenAICompletions Format = "openai_completions"

var openAICompletions = &answerFormat{
	name:     OpenAICompletions,
	provider: "openai",
	paths:    []pathRule{{suffix: "/completions", model: deployment, operation: operationCompletion}},
	marks:    map[string]func(value) bool{"choices": hasOnlyText},
	hints:    []string{"choices", "object"},
	shape: func(first firstObject) bool {
		return first.hints["object"].is("text_completion") || first.hints["choices"].any(isTextChoice)
	},
	newReader:  stateless(readOpenAICompletions),
	finishEnds: true,
}

func isTextChoice(choice value) bool { return choice.get("text").isString() }

// hasOnlyText reports whether any choice is not one of chat as well, as those of Together AI.
func hasOnlyText(choices value) bool {
	return choices.any(func(choice value) bool { return isTextChoice(choice) && !isChatChoice(choice) })
}

// readOpenAICompletions reads legacy completions.
func readOpenAICompletions(_ event, v value, r *record) {
	var choices, usage value
	for name, m := range v.members {
		switch string(name) {
		case "choices":
			choices = m
		case "model":
			r.model(m)
		case "id":
			r.id(m)
		case "usage":
			usage = m
		case "metrics":
			readVLLMMetrics(m, &r.observation)
		case "time_info": // of Cerebras
			r.observation.Timings.usageTimings(m)
		}
	}
	read, finished := readChoices(choices, r, func(choice value) value {
		var reason, stop value
		var ids, logprobs int64
		for name, m := range choice.members {
			switch string(name) {
			case "text":
				r.text(Content, m)
			case "finish_reason":
				reason = m
			case "stop_reason":
				stop = m
			case "token_ids":
				ids = m.len()
			case "logprobs":
				logprobs = readTokenLogprobs(m)
			}
		}
		if ids == 0 {
			ids = logprobs
		}
		r.count(ids)
		if reason == nil {
			return stop // of DeepSeek on Bedrock
		}
		return reason
	})
	readChatUsage(usage, finished, read, r)
}

// readTokenLogprobs returns the number of tokens that log probabilities stand for, or 0 if those of the prompt
// are among them: `echo` repeats the prompt, whose first token has no probability.
func readTokenLogprobs(logprobs value) int64 {
	for first := range logprobs.get("token_logprobs").elements {
		if first.isNull() {
			return 0
		}
		break
	}
	return logprobs.get("tokens").len()
}
