// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "strings"

// WorkersAI is the own format of the streams of Cloudflare Workers AI. Its paths are those of models of all kinds.
const WorkersAI Format = "workers_ai"

var workersAI = &answerFormat{
	name:      WorkersAI,
	hints:     []string{"p", "response", "tool_calls", "usage"},
	shape:     isWorkersAI,
	modelOf:   workersAIModel,
	newReader: stateless(readWorkersAI),
}

// isWorkersAI reports whether an object has a response, and nothing but what Workers AI sends beside it.
func isWorkersAI(first firstObject) bool {
	return first.hints["response"].isString() && first.onlyHas("p", "response", "tool_calls", "usage")
}

// workersAIModel returns what begins with @, such as @cf/meta/llama.
func workersAIModel(path string) string {
	if at := strings.LastIndex(path, "/@"); at >= 0 {
		return unescape(path[at+1:])
	}
	return ""
}

func readWorkersAI(_ event, v value, r *record) {
	r.text(Content, v, "response")
	for call := range v.get("tool_calls").elements {
		readFunction(call, r)
		readFunction(call.get("function"), r)
	}
	if usage := v.get("usage"); usage.isObject() {
		r.usage(readUsage(usage))
	}
}
