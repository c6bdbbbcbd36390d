// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"cmp"
	"net/http"
)

// A pieceReader reads a body that has no events, as it arrives. It must hold no more than a few bytes.
type pieceReader interface {
	read(p []byte, time int64, r *record)
	// end completes the record of a body that ended or was cut.
	end(r *record)
}

// unframed returns the reader of an answer that has no events, as its content type says, or nil.
func (d *Decoder) unframed() pieceReader {
	mediaType := bytes.ToLower([]byte(d.head.ContentType))
	if d.format.unframed == nil || d.head.Status >= http.StatusBadRequest || !d.format.unframed(mediaType) {
		return nil
	}
	return d.format.newPieces()
}

// piece reads what one read of an answer without events returned.
func (d *Decoder) piece(p []byte) {
	if len(p) == 0 {
		return
	}
	if d.read == nil {
		d.readAs(d.format)
		d.record.observation.Unframed = true
		d.record.byteRate = cmp.Or(headerRate(d.head.Header), mediaTypeRate([]byte(d.head.ContentType)), d.record.byteRate)
	}
	o := &d.record.observation
	index := o.Events
	o.Events++
	d.record.begin()
	d.pieces.read(p, d.time, &d.record)
	d.report(index)
}
