// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

package clients

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

type frameKind string

const (
	// roleFrame starts an answer and holds no token. On the Responses API these are
	// response.created and the frames between it and the first token.
	roleFrame    frameKind = "role"
	contentFrame frameKind = "content"
	finishFrame  frameKind = "finish"
	usageFrame   frameKind = "usage"
	doneFrame    frameKind = "done"
	// wholeFrame is an answer that is not streamed.
	wholeFrame frameKind = "whole"
)

// frame is one server-sent event. The server sends it at a time after the request.
type frame struct {
	kind  frameKind
	after time.Duration
	body  []byte
}

// The server's answer, one token per content frame, and the times of its tokens. The
// gaps are irregular, so that different kinds of mean give different numbers.
var (
	answerTokens = []string{
		"Tokens", " leave", " one", " by", " one", ",", " and", " each", " keeps", " its", " own", " time",
	}
	contentsAfterMs = []int64{200, 220, 255, 275, 325, 345, 465, 485, 505, 545, 565, 585}
)

const (
	roleAfter        = 80 * time.Millisecond
	finishAfter      = 590 * time.Millisecond
	wholeAnswerAfter = 300 * time.Millisecond

	inputTokens  = 17
	outputTokens = 12
)

func contentAfter(i int) time.Duration { return time.Duration(contentsAfterMs[i]) * time.Millisecond }

// object is a JSON object.
type object = map[string]any

// apiName is the path below /v1/ that a client posts to.
type apiName string

const (
	chatAPI      apiName = "chat/completions"
	responsesAPI apiName = "responses"
	anthropicAPI apiName = "messages"
)

// api is one of the APIs through which a client requests an answer.
type api struct {
	name   apiName
	frames func(model string, usage bool) []frame
	whole  func(model string) []byte
}

var apis = []api{
	{name: chatAPI, frames: chatFrames, whole: wholeChat},
	{name: responsesAPI, frames: responsesFrames, whole: wholeResponse},
	{name: anthropicAPI, frames: anthropicFrames},
}

func chatFrames(model string, usage bool) []frame {
	chunk := func(kind frameKind, after time.Duration, choices []object, usage object) frame {
		body := object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1795233292, "model": model,
			"choices": choices,
		}
		if usage != nil {
			body["usage"] = usage
		}
		return frame{kind: kind, after: after, body: event("", body)}
	}
	choice := func(delta object, finish any) []object {
		return []object{{"index": 0, "delta": delta, "finish_reason": finish}}
	}
	frames := []frame{chunk(roleFrame, roleAfter, choice(object{"role": "assistant", "content": ""}, nil), nil)}
	for i, token := range answerTokens {
		frames = append(frames, chunk(contentFrame, contentAfter(i), choice(object{"content": token}, nil), nil))
	}
	frames = append(frames, chunk(finishFrame, finishAfter, choice(object{}, "stop"), nil))
	if usage {
		frames = append(frames, chunk(usageFrame, finishAfter, []object{}, chatUsage))
	}
	return append(frames, frame{kind: doneFrame, after: finishAfter, body: []byte("data: [DONE]\n\n")})
}

func wholeChat(model string) []byte {
	return encode(object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1795233292, "model": model,
		"choices": []object{{
			"index": 0, "finish_reason": "stop",
			"message": object{"role": "assistant", "content": strings.Join(answerTokens, "")},
		}},
		"usage": chatUsage,
	})
}

var chatUsage = object{
	"prompt_tokens": inputTokens, "completion_tokens": outputTokens, "total_tokens": inputTokens + outputTokens,
}

// responsesFrames always include usage: this API has no option to leave it out.
func responsesFrames(model string, _ bool) []frame {
	sequence := 0
	numbered := func(kind frameKind, after time.Duration, name string, body object) frame {
		body["type"], body["sequence_number"] = name, sequence
		sequence++
		return frame{kind: kind, after: after, body: event(name, body)}
	}
	inPart := func(body object) object {
		body["item_id"], body["output_index"], body["content_index"] = "msg_1", 0, 0
		return body
	}
	answer := strings.Join(answerTokens, "")
	done := responseItem("completed", responsePart(answer))
	frames := []frame{
		numbered(roleFrame, roleAfter, "response.created", object{"response": responseBody(model, "in_progress")}),
		numbered(roleFrame, roleAfter, "response.output_item.added",
			object{"output_index": 0, "item": responseItem("in_progress")}),
		numbered(roleFrame, roleAfter, "response.content_part.added", inPart(object{"part": responsePart("")})),
	}
	for i, token := range answerTokens {
		frames = append(frames, numbered(contentFrame, contentAfter(i), "response.output_text.delta",
			inPart(object{"delta": token, "logprobs": []object{}})))
	}
	return append(frames,
		numbered(finishFrame, finishAfter, "response.output_text.done",
			inPart(object{"text": answer, "logprobs": []object{}})),
		numbered(finishFrame, finishAfter, "response.content_part.done", inPart(object{"part": responsePart(answer)})),
		numbered(finishFrame, finishAfter, "response.output_item.done", object{"output_index": 0, "item": done}),
		numbered(usageFrame, finishAfter, "response.completed",
			object{"response": responseBody(model, "completed", done)}),
	)
}

func wholeResponse(model string) []byte {
	return encode(responseBody(model, "completed", responseItem("completed", responsePart(strings.Join(answerTokens, "")))))
}

func responseBody(model, status string, output ...object) object {
	body := object{
		"id": "resp_1", "object": "response", "created_at": 1795233292, "model": model, "status": status,
		"output": append([]object{}, output...), "usage": nil,
	}
	if status == "completed" {
		body["usage"] = object{
			"input_tokens": inputTokens, "output_tokens": outputTokens, "total_tokens": inputTokens + outputTokens,
			"input_tokens_details":  object{"cached_tokens": 0},
			"output_tokens_details": object{"reasoning_tokens": 0},
		}
	}
	return body
}

func responseItem(status string, content ...object) object {
	return object{
		"id": "msg_1", "type": "message", "role": "assistant", "status": status,
		"content": append([]object{}, content...),
	}
}

func responsePart(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []object{}}
}

// anthropicFrames are those of Anthropic's Messages API. They always include usage.
func anthropicFrames(model string, _ bool) []frame {
	named := func(kind frameKind, after time.Duration, name string, body object) frame {
		body["type"] = name
		return frame{kind: kind, after: after, body: event(name, body)}
	}
	frames := []frame{
		named(roleFrame, roleAfter, "message_start", object{"message": object{
			"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []object{}, "stop_reason": nil,
			"usage": object{"input_tokens": inputTokens - 5, "cache_read_input_tokens": 5, "output_tokens": 1},
		}}),
		named(roleFrame, roleAfter, "content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}}),
	}
	for i, token := range answerTokens {
		frames = append(frames, named(contentFrame, contentAfter(i), "content_block_delta",
			object{"index": 0, "delta": object{"type": "text_delta", "text": token}}))
	}
	return append(frames,
		named(finishFrame, finishAfter, "content_block_stop", object{"index": 0}),
		named(usageFrame, finishAfter, "message_delta", object{
			"delta": object{"stop_reason": "end_turn", "stop_sequence": nil}, "usage": object{"output_tokens": outputTokens},
		}),
		named(doneFrame, finishAfter, "message_stop", object{}),
	)
}

// event encodes a server-sent event. An empty name means the default event type.
func event(name string, body object) []byte {
	encoded := fmt.Sprintf("data: %s\n\n", encode(body))
	if name != "" {
		encoded = fmt.Sprintf("event: %s\n%s", name, encoded)
	}
	return []byte(encoded)
}

func encode(body object) []byte {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err) // objects of this test always encode
	}
	return encoded
}
