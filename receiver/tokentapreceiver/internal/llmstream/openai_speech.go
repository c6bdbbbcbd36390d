// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"time"
)

// OpenAISpeech is the format of speech synthesis: audio, or events with audio.
const OpenAISpeech Format = "openai_speech"

var openAISpeech = &answerFormat{
	name:       OpenAISpeech,
	provider:   "openai",
	paths:      []pathRule{{suffix: "/audio/speech", operation: operationGenerate, output: outputSpeech, slow: true}},
	hints:      []string{"type"},
	shape:      func(first firstObject) bool { return first.begins("type", "speech.audio.") },
	newReader:  stateless(readOpenAISpeech),
	finishEnds: true,
	unframed: func(mediaType []byte) bool {
		return isAudioType(mediaType) || bytes.HasPrefix(mediaType, []byte("application/octet-stream"))
	},
	newPieces: newAudioPieces,
}

// readOpenAISpeech reads speech.audio.delta and speech.audio.done, or a JSON document with audio. Mistral, VoxCPM and SGLang have
// other names of the audio than OpenAI.
func readOpenAISpeech(_ event, v value, r *record) {
	for name, m := range v.members {
		switch string(name) {
		case "audio", "audio_data", "data":
			r.audio(m)
			r.audio(m.get("data"))
		case "type":
			if m.is("speech.audio.done") {
				r.end()
			}
		case "finish_reason": // of SGLang
			r.finish(0, m)
		case "usage":
			r.usage(readUsage(m))
		case "model":
			r.model(m)
		}
	}
}

// audioPieces reads a body of audio: each read is a chunk, unless it follows within mergedReads. It keeps the first bytes alone.
type audioPieces struct {
	start []byte
	bytes int64
	chunk int64 // when the last chunk began, as a Unix time in nanoseconds; 0 before the first
}

// mergedReads is the time in which reads are of one chunk: the buffers on the way divide what the service wrote at once.
const mergedReads = int64(time.Millisecond)

func newAudioPieces() pieceReader { return &audioPieces{start: make([]byte, 0, maxWAVHeader)} }

func (a *audioPieces) read(p []byte, time int64, r *record) {
	r.observation.Streamed = true
	if a.chunk == 0 || time-a.chunk >= mergedReads {
		a.chunk = time
		r.channels |= Audio
	}
	a.bytes += int64(len(p))
	a.start = append(a.start, p[:min(len(p), cap(a.start)-len(a.start))]...)
}

func (a *audioPieces) end(r *record) {
	rate, header := r.byteRate, int64(0)
	if bytes.HasPrefix(a.start, []byte(riff)) {
		rate, header = wavHeader(a.start)
	}
	if rate == 0 {
		r.lengthUnknown = true
		return
	}
	r.spoken = durationOf(max(a.bytes-header, 0), rate)
}
