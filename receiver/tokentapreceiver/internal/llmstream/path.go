// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"net/url"
	"strings"
)

// pathInfo is what a request's path says.
type pathInfo struct {
	format    Format
	model     string // if the path names it
	streams   bool   // the request streams unless its body says otherwise
	unary     bool   // the answer is one document, whatever the body says
	replays   bool   // the answer was generated before
	shared    bool   // answers of other formats and of other services have this path, too
	operation string
}

// The names of operations in OpenTelemetry's conventions.
const (
	operationChat       = "chat"
	operationCompletion = "text_completion"
	operationGenerate   = "generate_content"
)

// pathFacts reads the path. Gateways add prefixes, so its end decides.
func pathFacts(path, rawQuery string) (i pathInfo) {
	path = strings.TrimRight(path, "/")
	ends := func(suffix string) bool { return strings.HasSuffix(path, suffix) }
	query := func(name string) string {
		values, _ := url.ParseQuery(rawQuery)
		return values.Get(name)
	}
	resource, verb := path[strings.LastIndexByte(path, '/')+1:], ""
	if at := strings.LastIndexByte(resource, ':'); at >= 0 {
		resource, verb = resource[:at], resource[at+1:]
	}
	i.operation = operationChat
	switch {
	case ends("/chat/completions"):
		i.format, i.model = OpenAIChat, segmentAfter(path, "/deployments/")
	case ends("/completions"):
		i.format, i.model, i.operation = OpenAICompletions, segmentAfter(path, "/deployments/"), operationCompletion
	case ends("/responses"):
		i.format = OpenAIResponses
	case strings.Contains(path, "/responses/"):
		i.format, i.replays, i.streams = OpenAIResponses, true, query("stream") == "true"
	case ends("/v1/messages"):
		i.format = AnthropicMessages
	case verb == "streamRawPredict", verb == "rawPredict":
		i.format, i.model = AnthropicMessages, segmentAfter(strings.TrimSuffix(path, ":"+verb), "/models/")
		i.streams = verb == "streamRawPredict"
	case verb == "streamGenerateContent":
		i.format, i.model, i.streams, i.operation = Gemini, unescape(resource), true, operationGenerate
	case verb == "generateContent":
		i.format, i.model, i.unary, i.operation = Gemini, unescape(resource), true, operationGenerate
	case ends("/interactions"):
		i.format, i.operation = GeminiInteractions, operationGenerate
	case ends(".BidiGenerateContent"):
		i.format, i.streams, i.operation = GeminiLive, true, operationGenerate
	case ends("/realtime"):
		i.format, i.streams, i.model = OpenAIRealtime, true, cut([]byte(query("model")))
	case ends("/converse-stream"), ends("/converse"):
		i.format, i.model, i.streams = BedrockConverse, segmentBefore(path), ends("-stream")
		i.unary = !i.streams
	case ends("/invoke-with-response-stream"), ends("/invoke"):
		i.format, i.model, i.streams = BedrockInvoke, segmentBefore(path), ends("-stream")
		i.unary = !i.streams
	case ends("/api/chat"):
		i.format, i.streams = Ollama, true
	case ends("/api/generate"):
		i.format, i.streams, i.operation = Ollama, true, operationCompletion
	case ends("/completion"), ends("/infill"):
		i.format, i.operation = LlamaCpp, operationCompletion
	case ends("/generate"), ends("/generate_stream"):
		i.format, i.streams, i.operation = TGI, ends("_stream"), operationCompletion
		if i.model = segmentAfter(path, "/models/"); i.model != "" {
			i.format = Triton
		}
	case path == "", ends("/invocations"):
		i.format, i.shared, i.operation = TGI, true, operationCompletion
	case ends("/v1/chat"), ends("/v2/chat"):
		i.format = Cohere
	case ends("/text/generation_stream"), ends("/generation/text_stream"), ends("/text/chat_stream"):
		i.format, i.streams, i.operation = Watsonx, true, operationCompletion
	case strings.Contains(path, "/threads") && (ends("/runs") || ends("/submit_tool_outputs")):
		i.format = OpenAIAssistants
	default:
		i.operation = ""
	}
	return i
}

// segmentAfter returns the path's segment after the last occurrence of mark.
func segmentAfter(path, mark string) string {
	at := strings.LastIndex(path, mark)
	if at < 0 {
		return ""
	}
	segment, _, _ := strings.Cut(path[at+len(mark):], "/")
	return unescape(segment)
}

// segmentBefore returns what stands between /model/ and the last segment: an ID, or an
// ARN, which may have slashes of its own.
func segmentBefore(path string) string {
	at := strings.Index(path, "/model/")
	end := strings.LastIndexByte(path, '/')
	if at < 0 || end < at+len("/model/") {
		return ""
	}
	return unescape(path[at+len("/model/") : end])
}

func unescape(segment string) string {
	if name, err := url.PathUnescape(segment); err == nil {
		segment = name
	}
	return cut([]byte(segment))
}
