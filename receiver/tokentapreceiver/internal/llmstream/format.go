// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// Format is the format of an answer.
type Format string

// The formats that are read. Servers that speak OpenAI's formats, such as Azure OpenAI,
// vLLM, Mistral and llama.cpp's chat, are of those formats.
const (
	OpenAIChat         Format = "openai_chat"
	OpenAICompletions  Format = "openai_completions"
	OpenAIResponses    Format = "openai_responses"
	OpenAIRealtime     Format = "openai_realtime"
	OpenAIAssistants   Format = "openai_assistants"
	AnthropicMessages  Format = "anthropic_messages"
	Gemini             Format = "gemini"
	GeminiInteractions Format = "gemini_interactions"
	GeminiLive         Format = "gemini_live"
	BedrockConverse    Format = "bedrock_converse"
	BedrockInvoke      Format = "bedrock_invoke"
	Ollama             Format = "ollama"
	LlamaCpp           Format = "llamacpp"
	TGI                Format = "tgi"
	SGLang             Format = "sglang"
	Triton             Format = "triton"
	Cohere             Format = "cohere"
	Watsonx            Format = "watsonx"
	Replicate          Format = "replicate"

	// notLLM is what is known not to be an answer of an LLM.
	notLLM Format = "-"
)

// finishEnds reports whether a finish reason ends an answer: not all servers of the
// format send an end marker.
func finishEnds(f Format) bool {
	switch f {
	case OpenAIChat, OpenAICompletions, SGLang, BedrockInvoke:
		return true
	default:
		return false
	}
}

// A reader turns an event's JSON into facts.
type reader func(e event, v value, r *record)

func newReader(format Format) reader {
	switch format {
	case OpenAIChat:
		return readOpenAIChat
	case OpenAICompletions:
		return readOpenAICompletions
	case OpenAIResponses:
		return readOpenAIResponses
	case OpenAIRealtime:
		return readOpenAIRealtime
	case OpenAIAssistants:
		return readOpenAIAssistants
	case AnthropicMessages:
		return readAnthropicMessages
	case Gemini:
		return readGemini
	case GeminiInteractions:
		return readGeminiInteractions
	case GeminiLive:
		return readGeminiLive
	case BedrockConverse:
		return readBedrockConverse
	case BedrockInvoke:
		return newBedrockInvoke()
	case Ollama:
		return readOllama
	case LlamaCpp:
		return readLlamaCpp
	case TGI:
		return readTGI
	case SGLang:
		return newSGLang()
	case Triton:
		return readTriton
	case Cohere:
		return readCohere
	case Watsonx:
		return readWatsonx
	default:
		return readReplicate
	}
}

// shapeOf recognises a format by its first JSON object. It returns an empty format if
// the object may be of several.
func shapeOf(e event, v value) Format {
	if bytes.HasPrefix(e.name, []byte("thread.")) {
		return OpenAIAssistants
	}
	// A unary answer of TGI on its root path is an array, whose elements come here.
	var has struct{ kind, object, eventType value }
	var chat, legacy, content, stop, done, message, response, text, finish bool
	for name, m := range v.members {
		switch string(name) {
		case "jsonrpc":
			return notLLM
		case "object":
			has.object = m
		case "type":
			has.kind = m
		case "event_type":
			has.eventType = m
		case "choices":
			for choice := range m.elements {
				isChat, isLegacy := choice.get("delta") != nil || choice.get("message") != nil, choice.get("text").isString()
				if isLegacy && !isChat {
					return OpenAICompletions
				}
				chat, legacy = chat || isChat, legacy || isLegacy // Together AI sends both
			}
		case "candidates", "promptFeedback", "usageMetadata":
			return Gemini
		case "serverContent", "setupComplete", "toolCall":
			return GeminiLive
		case "interaction", "steps":
			return GeminiInteractions
		case "generated_text":
			return TGI
		case "token", "details":
			if m.isObject() {
				return TGI
			}
		case "meta_info":
			return SGLang
		case "text_output":
			return Triton
		case "results":
			for result := range m.elements {
				if result.get("generated_text").isString() {
					return Watsonx
				}
			}
		case "content":
			content = m.isString()
		case "stop":
			stop = true
		case "done":
			done = true
		case "message":
			message = m.isObject()
		case "response":
			response = m.isString()
		case "text":
			text = m.isString()
		case "finish_reason":
			finish = true
		case "messageStart", "contentBlockStart", "contentBlockDelta", "stopReason":
			return BedrockConverse
		}
	}
	kind, object := has.kind.raw(), has.object.raw()
	switch {
	case bytes.HasPrefix(object, []byte("chat.completion")):
		return OpenAIChat
	case string(object) == "text_completion", legacy:
		return OpenAICompletions
	case string(object) == "response", bytes.HasPrefix(kind, []byte("response.")):
		if bytes.HasPrefix(kind, []byte("response.")) && len(e.name) == 0 && v.get("event_id") != nil {
			return OpenAIRealtime
		}
		return OpenAIResponses
	case bytes.HasPrefix(kind, []byte("session.")):
		return OpenAIRealtime
	case bytes.HasPrefix(object, []byte("thread.")):
		return OpenAIAssistants
	case string(kind) == "message_start", string(kind) == "message", string(kind) == "completion":
		return AnthropicMessages
	case string(kind) == "message-start":
		return Cohere
	case bytes.HasPrefix(has.eventType.raw(), []byte("interaction.")):
		return GeminiInteractions
	case has.eventType.is("stream-start"), finish && (message || text && v.get("generation_id") != nil):
		return Cohere
	case chat:
		return OpenAIChat
	case done && (message || response):
		return Ollama
	case content && stop:
		return LlamaCpp
	default:
		return ""
	}
}
