// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

// GeminiLive is the format of Gemini's Live API, over WebSocket.
const GeminiLive Format = "gemini_live"

var geminiLive = &answerFormat{
	name:      GeminiLive,
	provider:  "gcp.gemini",
	paths:     []pathRule{{suffix: ".BidiGenerateContent", streams: true, operation: operationGenerate}},
	marks:     map[string]func(value) bool{"serverContent": anyValue, "setupComplete": anyValue, "toolCall": anyValue},
	newReader: stateless(readGeminiLive),
	normalise: addThoughts,
	connection: &connectionFormat{
		responseOf:   responseOfGeminiLive,
		clientMember: endsTurn,
	},
}

// responseOfGeminiLive returns the position of the turn that the model is on.
func responseOfGeminiLive(c *Connection, v value) int {
	content, call := v.get("serverContent"), v.get("toolCall")
	if len(c.open) > 0 && (content != nil || call != nil || v.get("usageMetadata") != nil) {
		return 0
	}
	output := call != nil || content.get("modelTurn") != nil || content.get("outputTranscription") != nil
	if !output && (content == nil || !c.client.waiting()) {
		return -1 // such as a transcription of what the user said
	}
	return c.next(nil, false)
}

// endsTurn notes that the client asks for a turn of the model: one answers all that it sent. Google's Python SDK has the second
// of the names.
func endsTurn(name []byte, m value, said *clientMessage) {
	switch string(name) {
	case "setup":
		said.model = m.get("model")
	case "clientContent", "client_content":
		said.endsTurn = said.endsTurn || m.get("turnComplete").isTrue() || m.get("turn_complete").isTrue()
	case "toolResponse", "tool_response":
		said.endsTurn = true
	case "realtimeInput", "realtime_input":
		said.endsTurn = said.endsTurn || m.get("text") != nil || m.get("activityEnd") != nil || m.get("activity_end") != nil
	}
}

// readGeminiLive reads the messages of a Live connection.
func readGeminiLive(_ event, v value, r *record) {
	for name, m := range v.members {
		switch string(name) {
		case "serverContent":
			readGeminiParts(m.get("modelTurn"), r)
			r.text(Content, m, "outputTranscription", "text")
			if m.get("interrupted").isTrue() { // late output and turnComplete may follow
				r.observation.Cancelled, r.observation.Interrupted = true, true
				r.finish(0, value(`"interrupted"`))
			}
			if m.get("turnComplete").isTrue() {
				if !r.observation.Interrupted {
					r.finish(0, value(`"turnComplete"`))
				}
				r.end()
			}
		case "toolCall":
			for call := range m.get("functionCalls").elements {
				readGeminiCall(call, r)
			}
			r.finish(0, value(`"toolCall"`))
			r.end() // what follows answers the client's toolResponse
		case "usageMetadata":
			r.usage(readUsage(m))
		}
	}
}
