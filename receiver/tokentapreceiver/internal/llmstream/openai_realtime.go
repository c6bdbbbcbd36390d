// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// OpenAIRealtime is the format of the Realtime API.
const OpenAIRealtime Format = "openai_realtime"

var openAIRealtime = &answerFormat{
	name:     OpenAIRealtime,
	provider: "openai",
	paths:    []pathRule{{suffix: "/realtime", streams: true, model: queryModel}},
	hints:    []string{"event_id", "type"},
	shape: func(first firstObject) bool {
		return first.begins("type", "session.") ||
			first.begins("type", "response.") && len(first.event.name) == 0 && first.hints["event_id"] != nil
	},
	newReader:  stateless(readOpenAIRealtime),
	connection: openAIConnection,
}

func queryModel(_, rawQuery string) string { return cut([]byte(queryValue(rawQuery, "model"))) }

// readOpenAIRealtime reads the messages of one response of the Realtime API.
func readOpenAIRealtime(_ event, v value, r *record) {
	kind := v.get("type").raw()
	switch string(kind) {
	case "response.text.delta", "response.audio_transcript.delta", "response.output_audio_transcript.delta":
		r.text(Content, v, "delta")
	case "response.done":
		response := v.get("response")
		r.usage(readUsage(response.get("usage")))
		r.id(response.get("id"))
		r.finish(0, response.get("status"))
		if failure := response.path("status_details", "error"); failure.isObject() {
			r.fail(errorType(failure).name())
		}
		readStatus(response.get("status"), r)
		readCancellation(response.path("status_details", "reason"), r)
		r.end()
	case "response.created":
		r.id(v.path("response", "id"))
		r.byteRate = realtimeRate(v.get("response"), r.byteRate)
	default:
		readResponseEvent(kind, v.get("item"), v.get("delta"), r)
	}
}

// readCancellation reads why a response ended early. Without voice detection in the service, it is the client that notices
// the user's voice, and cancels an answer that was being spoken.
func readCancellation(reason value, r *record) {
	o := &r.observation
	switch {
	case reason.is("turn_detected"):
		o.Cancelled, o.Interrupted = true, true
	case reason.is("client_cancelled"):
		o.Cancelled, o.Interrupted = true, o.ChunksOf(Audio) > 0
	}
}

// realtimeRate returns the number of bytes in a second of the audio that a session or a response says to send, 0 if that has
// no constant rate, or before if it says nothing.
func realtimeRate(v value, before int64) int64 {
	format := v.path("audio", "output", "format")
	if format.isObject() {
		samples, _ := format.get("rate").count()
		return byteRate(format.get("type").raw(), samples)
	}
	if format = v.get("output_audio_format"); format.hasText() { // of the first version
		return byteRate(format.raw(), 0)
	}
	return before
}

// openAIConnection reads the messages of OpenAI's APIs, which name their response.
var openAIConnection = &connectionFormat{
	responseOf: responseOfOpenAI,
	clientMember: func(name []byte, m value, said *clientMessage) {
		switch string(name) {
		case "type":
			said.asks = m.is("response.create")
		case "event_id":
			said.id = m
		}
	},
}

func responseOfOpenAI(c *Connection, v value) int {
	kind := v.get("type")
	switch {
	case bytes.HasPrefix(kind.raw(), []byte("response.")):
		id := v.get("response_id")
		if id == nil {
			id = v.path("response", "id")
		}
		if at := c.find(id); at >= 0 {
			return at
		}
		return c.next(id, kind.is("response.created"))
	case kind.is("error"):
		failure := v.get("error")
		asked, ok := c.client.take(failure.get("event_id"))
		if !ok {
			return -1 // it answers no request for a response
		}
		at := c.start(asked.time, true)
		c.open[at].fail(errorType(failure).name())
		c.open[at].end()
		return at
	case kind.is("input_audio_buffer.committed"):
		c.committed = c.time
	default:
		session := v.get("session")
		if model := session.get("model"); model.hasText() {
			c.model = model.name()
		}
		c.byteRate = realtimeRate(session, c.byteRate)
	}
	return -1
}
