// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// OpenAITranscription is the format of transcriptions and translations of audio: events, a JSON document or text.
const OpenAITranscription Format = "openai_transcription"

var openAITranscription = &answerFormat{
	name:     OpenAITranscription,
	provider: "openai",
	paths: []pathRule{
		{suffix: "/audio/transcriptions", operation: operationGenerate, slow: true},
		{suffix: "/audio/translations", operation: operationGenerate, slow: true},
	},
	hints: []string{"object", "type"},
	shape: func(first firstObject) bool {
		return first.begins("type", "transcript.") || first.begins("type", "transcription.") ||
			first.begins("object", "transcription.") || first.begins("object", "translation.")
	},
	newReader:  stateless(readOpenAITranscription),
	finishEnds: true,
	unframed: func(mediaType []byte) bool {
		return bytes.HasPrefix(mediaType, []byte("text/plain")) || bytes.HasPrefix(mediaType, []byte("text/vtt")) ||
			bytes.Contains(mediaType, []byte("subrip"))
	},
	newPieces: func() pieceReader { return &textPieces{} },
}

// readOpenAITranscription reads transcript.text.delta and transcript.text.done of OpenAI, transcription.text.delta and
// transcription.done of Mistral, the chunks of vLLM, which are those of chat completions, or a whole answer. Segments and the
// last event repeat the deltas before them.
func readOpenAITranscription(e event, v value, r *record) {
	var kind, text, usage value
	for name, m := range v.members {
		switch string(name) {
		case "choices":
			readOpenAIChat(e, v, r)
			return
		case "type":
			kind = m
		case "delta", "text":
			text = m
		case "logprobs":
			r.count(m.len())
		case "usage":
			usage = m
		case "model":
			r.model(m)
		}
	}
	r.known = r.known || text.isString()
	switch {
	case bytes.HasSuffix(kind.raw(), []byte(".delta")):
		r.text(Content, text)
		r.deltas = r.deltas || r.channels != 0
	case bytes.HasSuffix(kind.raw(), []byte(".segment")):
		if !r.deltas {
			r.text(Content, text)
		}
	case r.observation.TokenChunks == 0:
		r.text(Content, text)
		r.adds = true
	}
	if usage.isObject() {
		r.usage(readUsage(usage))
	}
	if kind.is("transcript.text.done") || kind.is("transcription.done") {
		r.end()
	}
}

// textPieces reads a body of text: the answer is one chunk.
type textPieces struct{ found bool }

func (t *textPieces) read(p []byte, _ int64, r *record) {
	if !t.found && len(bytes.TrimSpace(p)) > 0 {
		t.found = true
		r.token(Content)
	}
}

func (*textPieces) end(*record) {}
