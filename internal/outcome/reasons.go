// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"bytes"
	"strings"
)

// Meaning is what a finish reason says of a request.
type Meaning uint8

// The meanings, the most serious last: of several answers to one request, that of the worst counts.
const (
	// Ended is an ordinary end, such as stop, length or a tool call. A reason that the table does not
	// have means this, too.
	Ended Meaning = iota
	// Filtered means that a content filter ended the answer, which may then have no token.
	Filtered
	// Unfinished means that another engine continues the request.
	Unfinished
	// Cancelled means that the client cancelled the request.
	Cancelled
	// Aborted means that the engine stopped the request: for its client, or by itself.
	Aborted
	// Failed means that the service could not finish the answer.
	Failed
)

// reasons is the table of finish reasons, in lower case and with "_" for "-" and " ". Ordinary ends
// are left out. docs/definitions.md has the same table.
var reasons = map[string]Meaning{
	"error":                        Failed,
	"failed":                       Failed,
	"failure":                      Failed,
	"timeout":                      Failed,  // Cohere
	"timed_out":                    Failed,  // TensorRT-LLM
	"time_limit":                   Failed,  // watsonx.ai
	"insufficient_system_resource": Failed,  // DeepSeek
	"malformed_function_call":      Failed,  // Gemini
	"malformed_response":           Failed,  // Gemini
	"unexpected_tool_call":         Failed,  // Gemini
	"missing_thought_signature":    Failed,  // Gemini
	"malformed_model_output":       Failed,  // Bedrock
	"malformed_tool_use":           Failed,  // Bedrock
	"abort":                        Aborted, // vLLM, SGLang
	"aborted":                      Aborted,
	"cancel":                       Cancelled,
	"cancelled":                    Cancelled,
	"canceled":                     Cancelled,
	"user_cancel":                  Cancelled, // Cohere
	"user_cancelled":               Cancelled,
	"dropped":                      Cancelled,  // TGI
	"not_finished":                 Unfinished, // TensorRT-LLM
	"content_filter":               Filtered,
	"content_filtered":             Filtered, // Bedrock
	"guardrail_intervened":         Filtered, // Bedrock
	"refusal":                      Filtered, // Anthropic
	"sensitive":                    Filtered, // Zhipu
	"safety":                       Filtered, // this and the following: Gemini
	"recitation":                   Filtered,
	"blocklist":                    Filtered,
	"prohibited_content":           Filtered,
	"spii":                         Filtered,
	"language":                     Filtered,
	"model_armor":                  Filtered,
	"image_safety":                 Filtered,
	"image_recitation":             Filtered,
	"image_prohibited_content":     Filtered,
}

// maxReason is longer than any known finish reason.
const maxReason = 64

// MeaningOf returns the meaning of a finish reason as any service writes it: COMPLETE, content-filter,
// FinishReason.SAFETY. Besides those of the table, names that begin with error_ or end in _error fail.
// It allocates nothing.
func MeaningOf(reason string) Meaning {
	reason = reason[strings.LastIndexByte(reason, '.')+1:]
	if len(reason) > maxReason {
		return Ended
	}
	var buffer [maxReason]byte
	name := buffer[:len(reason)]
	for i := range name {
		switch c := reason[i]; {
		case 'A' <= c && c <= 'Z':
			name[i] = c + 'a' - 'A'
		case c == '-' || c == ' ':
			name[i] = '_'
		default:
			name[i] = c
		}
	}
	name = bytes.TrimPrefix(name, []byte("finish_reason_"))
	if m, ok := reasons[string(name)]; ok {
		return m
	}
	if bytes.HasPrefix(name, []byte("error_")) || bytes.HasSuffix(name, []byte("_error")) {
		return Failed
	}
	return Ended
}
