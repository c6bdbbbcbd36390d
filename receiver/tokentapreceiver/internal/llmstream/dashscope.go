// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

// DashScope is the own format of Alibaba Cloud's Model Studio.
const DashScope Format = "dashscope"

var dashScope = &answerFormat{
	name: DashScope,
	paths: []pathRule{
		{suffix: "/services/aigc/text-generation/generation"},
		{suffix: "/services/aigc/multimodal-generation/generation", shared: true},
		{suffix: "/completion", within: "/api/v1/apps/"},
	},
	hints: []string{"output", "request_id"},
	shape: func(first firstObject) bool {
		output := first.hints["output"]
		return first.hints["request_id"] != nil && (output.get("choices") != nil || output.get("text").isString())
	},
	asks:      func(has func(string) bool) bool { return has("model") && has("input") },
	newReader: newDashScope,
}

// dashScopeTexts are the lengths of what a choice has so far.
type dashScopeTexts struct{ content, reasoning, calls int }

// newDashScope returns a reader of DashScope's own format. Texts are cumulative unless the request
// asks for increments, so that an event has tokens if a text of its choice grew, or if the usage did
// and an increment is as long as the one before.
func newDashScope() eventReader {
	var before [maxChoices]dashScopeTexts
	var total int64
	return func(_ event, v value, r *record) {
		r.id(v.get("request_id"))
		usage := readUsage(v.get("usage"))
		grew := usage.Output.Known && usage.Output.Value > total
		output := v.get("output")
		if choices := output.get("choices"); choices != nil {
			readChoices(choices, r, func(choice value) value {
				message := choice.get("message")
				readDashScope(message, message.get("content"), &before[indexOf(choice, 0)], grew, r)
				return dashScopeReason(choice.get("finish_reason"))
			})
		} else {
			r.choice()
			readDashScope(output, output.get("text"), &before[0], grew, r)
			r.finish(0, dashScopeReason(output.get("finish_reason")))
		}
		if usage.Output.Known {
			total = usage.Output.Value
			r.usage(usage)
			r.running(total)
		}
		if len(r.observation.FinishReasons) > 0 {
			r.end()
		}
	}
}

// dashScopeReason returns a finish reason. It is "null" before the end.
func dashScopeReason(reason value) value {
	if reason.is("null") {
		return nil
	}
	return reason
}

// readDashScope marks the texts of a choice that changed since before. If none did though the usage grew, one of the same
// length replaced it.
func readDashScope(message, content value, before *dashScopeTexts, grew bool, r *record) {
	reasoning, calls := message.get("reasoning_content"), message.get("tool_calls")
	now := dashScopeTexts{len(content), len(reasoning), len(calls)}
	same := now == *before && grew
	hasText := content.hasText() || content.any(func(part value) bool { return part.get("text").hasText() })
	hasCalls := calls.any(func(value) bool { return true })
	if hasText && (now.content != before.content || same) {
		r.token(Content)
	}
	if reasoning.hasText() && (now.reasoning != before.reasoning || same && !hasText) {
		r.token(Reasoning)
	}
	if hasCalls && (now.calls != before.calls || same && !hasText) {
		r.token(ToolCall)
	}
	*before = now
}
