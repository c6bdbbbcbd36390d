// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"errors"

	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// answerReader decodes the body of an answer, which is no connection.
type answerReader struct {
	readAt         int64              // when what is being decoded was read
	decoder        *llmstream.Decoder // nil if the answer is of no model call
	content        *contentDecoder    // nil without content encoding
	unknownContent bool               // the content encoding is unknown or damaged
}

// open opens the decoder of an answer. It reports whether the answer can be decoded.
func (r *answerReader) open(head llmstream.AnswerHead, limits llmstream.Limits, chunk func(llmstream.Chunk)) (ok bool) {
	r.decoder = llmstream.NewDecoder(head, limits, chunk)
	encodings, ok := encodingsOf(head.Header)
	r.unknownContent = !ok
	if len(encodings) > 0 {
		r.content = newContentDecoder(encodings, limits.Memory, func(p []byte) { r.decoder.Write(p, r.readAt) })
	}
	return ok
}

// write decodes what a read of the answer returned. It reports whether to go on.
func (r *answerReader) write(read arrival) (more bool) {
	if r.decoder == nil {
		return true
	}
	more = true
	if r.readAt = read.at; r.content == nil {
		r.decoder.Write(read.bytes, read.at)
	} else if r.content.write(read.bytes); r.content.err != nil {
		r.unknownContent, more = !errors.Is(r.content.err, errNoMemory), false
	}
	if !r.decoder.GaveUp() {
		return more
	}
	if r.content != nil {
		r.content.stop()
		r.content = nil
	}
	return false
}

// end decodes the rest. complete says whether the body was read to its end.
func (r *answerReader) end(at int64, complete bool) llmstream.Observation {
	if r.content != nil {
		err := r.content.end()
		damaged := err != nil && !errors.Is(err, errNoMemory)
		r.unknownContent = r.unknownContent || damaged && complete
	}
	if r.decoder != nil {
		r.decoder.End(at)
	}
	o := r.observation()
	o.Ended = o.Ended || o.Unframed && complete
	return o
}

// observation returns what the answer reported so far.
func (r *answerReader) observation() (o llmstream.Observation) {
	if r.decoder != nil {
		o = r.decoder.Observation()
	}
	return o
}

// release releases the decoders. What was found stays.
func (r *answerReader) release() { r.decoder, r.content = nil, nil }
