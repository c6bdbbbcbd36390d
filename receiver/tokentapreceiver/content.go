// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/inflate"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// contentDecoder decodes the content encoding of an answer's copy. Decoders pull their
// input, while an answer is pushed: the decoder runs as a coroutine that is suspended
// whenever it needs more input. So all of a read is decoded before write returns.
type contentDecoder struct {
	input  []byte // not yet decoded
	ended  bool   // there is no further input
	resume func() (struct{}, bool)
	stop   func()
	output func(p []byte)
	read   int64 // encoded bytes
	err    error
}

// openDecoders has a decoder for each supported content encoding. Those of zstd are for windows
// of at least 256 KiB, because later frames may have larger ones than the first.
var openDecoders = map[string]inflate.Open{
	"gzip":    inflate.Gzip,
	"x-gzip":  inflate.Gzip,
	"deflate": inflate.ZlibOrDeflate,
	"br":      inflate.Brotli,
	"zstd":    inflate.Zstd(512<<10, 256<<10, 512<<10, 1<<20, 2<<20, 4<<20),
}

// maxEncodings is the number of content encodings of one body that are decoded. It is that
// of curl.
const maxEncodings = 5

// contentEncodings are the decoders of the encodings of a body, in the order in which the
// encodings were applied.
type contentEncodings []inflate.Open

// encodingsOf reads the header Content-Encoding. ok is false if an encoding is unknown, or
// if there are too many.
func encodingsOf(header http.Header) (applied contentEncodings, ok bool) {
	for encoding := range strings.SplitSeq(strings.Join(header["Content-Encoding"], ","), ",") {
		encoding = strings.ToLower(strings.TrimSpace(encoding))
		if encoding == "" || encoding == "identity" {
			continue
		}
		open, ok := openDecoders[encoding]
		if !ok || len(applied) == maxEncodings {
			return nil, false
		}
		applied = append(applied, open)
	}
	return applied, true
}

// open returns a reader of the decoded bytes of encoded. It fails once tooLarge is true of
// the bytes that any of the decoders returned: a small body can keep them busy without end,
// and return nothing. The caller calls release after the last read.
func (applied contentEncodings) open(encoded io.Reader, memory *llmstream.Account, tooLarge func(written int64) bool) (decoded io.Reader, release func(), err error) {
	var opened []io.Closer
	held := 0
	hold := func(n int64) error {
		if !memory.Take(int(n)) {
			return errNoMemory
		}
		held += int(n)
		return nil
	}
	release = func() {
		for _, decoder := range opened {
			_ = decoder.Close()
		}
		memory.Give(held)
	}
	decoded = encoded
	for _, open := range slices.Backward(applied) {
		decoder, err := open(decoded, hold)
		if err != nil {
			release()
			return nil, nil, err
		}
		opened = append(opened, decoder)
		decoded = &outputLimit{Reader: decoder, tooLarge: tooLarge}
	}
	return decoded, release, nil
}

var (
	errInflation = errors.New("the decoded body is too large")
	errNoMemory  = errors.New("the decoders of all exchanges hold too many bytes; raise max_memory_mib")
)

// outputLimit limits the output of a decoder.
type outputLimit struct {
	io.Reader
	written  int64
	tooLarge func(written int64) bool
}

// Read implements io.Reader.
func (l *outputLimit) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.written += int64(n); err == nil && l.tooLarge(l.written) {
		err = errInflation
	}
	return n, err
}

// newContentDecoder returns a decoder of an answer with encodings.
func newContentDecoder(applied contentEncodings, memory *llmstream.Account, output func(p []byte)) *contentDecoder {
	d := &contentDecoder{output: output}
	d.resume, d.stop = iter.Pull(func(yield func(struct{}) bool) {
		d.err = d.decode(applied, memory, &suspendingReader{d, yield})
	})
	return d
}

// Above minInflation bytes, an answer may inflate to maxInflation times its size. Events
// that are nearly equal compress far less.
const (
	minInflation = 4 << 20
	maxInflation = 250
)

func (d *contentDecoder) decode(applied contentEncodings, memory *llmstream.Account, encoded io.Reader) error {
	decoded, release, err := applied.open(encoded, memory, func(written int64) bool { return written > minInflation && written > maxInflation*d.read })
	if err != nil {
		return err
	}
	defer release()
	buffer := make([]byte, bufferSize)
	for {
		n, err := decoded.Read(buffer)
		d.output(buffer[:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// write decodes p as far as it goes.
func (d *contentDecoder) write(p []byte) {
	d.input = p
	d.read += int64(len(p))
	d.resume()
	d.input = nil
}

// end says that there is no more input. It decodes the rest and returns the error of the decoder.
func (d *contentDecoder) end() error {
	d.ended = true
	d.resume()
	d.stop()
	return d.err
}

// suspendingReader suspends the coroutine until there is input.
type suspendingReader struct {
	decoder *contentDecoder
	yield   func(struct{}) bool
}

// Read implements io.Reader.
func (r *suspendingReader) Read(p []byte) (int, error) {
	d := r.decoder
	for len(d.input) == 0 {
		if d.ended || !r.yield(struct{}{}) {
			return 0, io.EOF
		}
	}
	n := copy(p, d.input)
	d.input = d.input[n:]
	return n, nil
}
