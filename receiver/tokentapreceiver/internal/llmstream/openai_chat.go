// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// OpenAIChat is the format of chat completions.
const OpenAIChat Format = "openai_chat"

var openAIChat = &answerFormat{
	name:       OpenAIChat,
	provider:   "openai",
	paths:      []pathRule{{suffix: "/chat/completions", model: deployment}},
	hints:      []string{"choices", "object"},
	shape:      func(first firstObject) bool { return first.begins("object", "chat.completion") },
	guess:      func(first firstObject) bool { return first.hints["choices"].any(isChatChoice) },
	newReader:  stateless(readOpenAIChat),
	finishEnds: true,
}

func isChatChoice(choice value) bool {
	return choice.get("delta") != nil || choice.get("message") != nil
}

// readOpenAIChat reads chat completions, as OpenAI and those compatible with it send
// them. An event with `choices: []` may hold a filter result, progress or the usage.
func readOpenAIChat(_ event, v value, r *record) {
	var choices, usage, groq, timings, modality value
	whole, summary := false, false
	for name, m := range v.members {
		switch string(name) {
		case "choices":
			choices = m
		case "model":
			r.model(m)
		case "id":
			r.id(m)
		case "object":
			whole, summary = m.is("chat.completion"), bytes.HasSuffix(m.raw(), []byte(".done"))
		case "usage":
			usage = m
		case "x_groq":
			groq = m.get("usage")
			if failure := m.get("error"); failure.isObject() {
				r.fail(errorType(failure).name())
			} else if failure.hasText() {
				r.fail(failure.name())
			}
		case "timings":
			timings = m
		case "modality":
			modality = m
		case "metrics":
			readVLLMMetrics(m, &r.observation)
		case "time_info": // of Cerebras
			r.observation.Timings.usageTimings(m)
		case "latency_checkpoint":
			r.observation.Timings.azure(m)
		}
	}
	if usage.isNull() {
		usage = groq
	}
	read, finished := readChoices(choices, r, func(choice value) value {
		reason, own := readChatChoice(choice, modality, summary, r)
		if usage.isNull() {
			usage = own
		}
		return reason
	})
	readChatUsage(usage, finished, read, r)
	if timings != nil {
		r.observation.Timings.llamaCpp(timings)
		if n, ok := timings.get("predicted_n").count(); ok && usage.isNull() {
			r.running(n)
		}
	}
	if whole {
		r.end()
	}
}

// readChoices reads each choice with a function that returns its finish reason. It returns the
// number of choices, and the index of one that finished, or -1.
func readChoices(choices value, r *record, read func(choice value) (reason value)) (n, finished int) {
	finished = -1
	for choice := range choices.elements {
		index := indexOf(choice, n)
		n++
		r.choice()
		if reason := read(choice); reason.name() != "" {
			finished = index
			r.finish(index, reason)
		}
		r.seen(index)
	}
	return n, finished
}

// indexOf returns a choice's index, or its position if it has none.
func indexOf(choice value, position int) int {
	if n, ok := choice.get("index").count(); ok && n < maxChoices {
		return int(n)
	}
	return position
}

// readChatUsage reads the usage of an event with the given number of choices, of which
// one finished, or -1. Usage after the last choice is for all. Usage on a finish event is
// of that choice: TGI sends one per choice.
func readChatUsage(usage value, finished, choices int, r *record) {
	if !usage.isObject() {
		return
	}
	u := readUsage(usage)
	if choices == 1 && finished >= 0 {
		r.usageOf(finished, u)
	} else {
		r.usage(u)
	}
	r.observation.Timings.usageTimings(usage)
	if u.Output.Known && choices > 0 {
		hidden := int64(0)
		if !r.showedReasoning() {
			hidden = u.Reasoning.Value
		}
		r.running(u.Output.Value - hidden)
	}
}

// readChatChoice reads one choice, and returns its finish reason and its own usage, which
// Moonshot sends. A summary repeats the message, and so does a message after deltas with tokens.
func readChatChoice(choice, modality value, summary bool, r *record) (reason, usage value) {
	var delta, message, stop value
	var ids, logprobs int64
	for name, m := range choice.members {
		switch string(name) {
		case "delta":
			delta = m
		case "message":
			message = m
		case "finish_reason":
			reason = m
		case "stop_reason":
			stop = m
		case "usage":
			usage = m
		case "modality":
			modality = m
		case "error":
			if m.isObject() {
				r.fail(errorType(m).name())
			}
		case "token_ids":
			ids = m.len()
		case "logprobs":
			logprobs = m.get("content").len() + m.get("refusal").len() + m.get("reasoning_content").len()
		}
	}
	if reason == nil {
		reason = stop // of Mistral on Bedrock; others send both
	}
	part := delta.isObject() // Perplexity repeats the whole message beside it
	if !part && !summary && !r.deltas {
		delta = message
	}
	tokenID := readChatDelta(delta, modality, r)
	r.deltas = r.deltas || part && r.channels != 0
	if tokenID && ids == 0 {
		ids = 1
	}
	if ids > 0 {
		r.count(ids)
	} else {
		r.count(logprobs)
	}
	return reason, usage
}

// readChatDelta reads the message or a part of it. The reasoning has three names, of
// which several may stand side by side. The content of a delta of another modality than text is
// encoded. It reports whether the delta is of one token ID.
func readChatDelta(delta, modality value, r *record) (tokenID bool) {
	var content value
	for name, m := range delta.members {
		switch string(name) {
		case "content":
			content = m
		case "modality":
			modality = m
		case "reasoning_content", "reasoning", "reasoning_text":
			r.text(Reasoning, m)
		case "reasoning_details":
			r.text(Reasoning, m, "*", "text")
			r.text(Reasoning, m, "*", "summary")
		case "reasoning_steps": // of Perplexity
			r.text(Reasoning, m, "*", "thought")
		case "refusal":
			r.text(Refusal, m)
		case "audio":
			r.text(Content, m, "transcript")
			r.audio(m.get("data"))
		case "tool_calls":
			for call := range m.elements {
				readFunction(call.get("function"), r)
			}
			readFunction(m.get("function"), r) // some send one call without the array
		case "function_call":
			readFunction(m, r)
		case "token_id":
			tokenID = m.isNumber()
		}
	}
	if modality.hasText() && !bytes.EqualFold(modality.raw(), []byte("text")) {
		return tokenID
	}
	r.text(Content, content)
	for part := range content.elements {
		readContentPart(part, r)
	}
	return tokenID
}

// readContentPart reads an element of a list of contents, as Mistral and Databricks send
// them.
func readContentPart(part value, r *record) {
	if part.get("type").is("reasoning") {
		r.text(Reasoning, part, "text")
	} else {
		r.text(Content, part, "text")
	}
	r.text(Reasoning, part, "summary", "*", "text")
	r.text(Reasoning, part, "thinking")
	r.text(Reasoning, part, "thinking", "*", "text")
}

// readFunction reads a call's name and arguments, which some send as an object.
func readFunction(function value, r *record) {
	for name, m := range function.members {
		switch string(name) {
		case "name":
			r.text(ToolCall, m)
		case "arguments":
			if r.text(ToolCall, m); m.isObject() && len(m) > len("{}") {
				r.token(ToolCall)
			}
		}
	}
}
