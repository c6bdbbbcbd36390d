// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
)

// windowBytes is the longest distance of a reference in deflated data.
const windowBytes = 32 << 10

// inflaterBytes is about what an inflater holds beside the text: its own window, and the
// window and the tables of its reader.
const inflaterBytes = 2*windowBytes + 16<<10

// messageTail is what a sender cuts off a deflated message, and an empty last block.
const messageTail = "\x00\x00\xff\xff\x01\x00\x00\xff\xff"

var errTooLong = errors.New("the message is too long")

// inflater decompresses the messages of permessage-deflate (RFC 7692).
type inflater struct {
	text   buffer
	window []byte // the end of the messages so far, if later ones refer to them
	keeps  bool
	source bytes.Reader
	reader io.ReadCloser
	piece  [4 << 10]byte
}

// inflate returns the text of a message that ends with messageTail. The text is valid
// until the next call.
func (f *inflater) inflate(message []byte) ([]byte, error) {
	f.source.Reset(message)
	f.text.reset()
	if f.reader == nil {
		if !f.text.memory.Take(inflaterBytes) {
			return nil, errTooLong
		}
		f.reader = flate.NewReader(&f.source)
	} else if err := f.reader.(flate.Resetter).Reset(&f.source, f.window); err != nil {
		return nil, err
	}
	for {
		n, err := f.reader.Read(f.piece[:])
		switch {
		case !f.text.add(f.piece[:n]):
			return nil, errTooLong
		case err == io.EOF:
			f.remember(f.text.bytes)
			return f.text.bytes, nil
		case err != nil:
			return nil, err
		}
	}
}

// release ends the use of the inflater.
func (f *inflater) release() {
	f.text.release()
	if f.reader != nil {
		f.text.memory.Give(inflaterBytes)
	}
}

func (f *inflater) remember(text []byte) {
	if !f.keeps {
		return
	}
	text = text[max(0, len(text)-windowBytes):]
	over := max(0, len(f.window)+len(text)-windowBytes)
	f.window = append(f.window[:copy(f.window, f.window[over:])], text...)
}
