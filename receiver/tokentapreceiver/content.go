// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// contentDecoder decodes the content encoding of an answer's copy. Decoders pull their
// input, while an answer is pushed: the decoder runs as a coroutine that is suspended
// whenever it needs more input. So all of a read is decoded before write returns.
type contentDecoder struct {
	input   []byte // not yet decoded
	ended   bool   // there is no further input
	resume  func() (struct{}, bool)
	stop    func()
	output  func(p []byte)
	read    int64 // encoded bytes
	written int64 // decoded bytes
	err     error
}

// maxWindow is the largest window of zstd that HTTP allows, by RFC 9659.
const maxWindow = 8 << 20

// openDecoders has a decoder for each supported content encoding.
var openDecoders = map[string]func(io.Reader) (io.Reader, error){
	"gzip":    openGzip,
	"x-gzip":  openGzip,
	"deflate": openDeflate,
	"br":      func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil }, //nolint:unparam // as the others
	"zstd": func(r io.Reader) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	},
}

func openGzip(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }

// openDeflate accepts a zlib stream, as HTTP says, and a bare deflate stream, which some
// servers send.
func openDeflate(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	head, err := buffered.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(buffered)
	}
	return flate.NewReader(buffered), nil
}

// maxEncodings is the number of content encodings of one answer that are decoded.
const maxEncodings = 2

// newContentDecoder returns nil for an answer without content encoding. encodings is in the
// order in which they were applied. ok is false if one is unknown, or if there are too many.
func newContentDecoder(encodings string, output func(p []byte)) (d *contentDecoder, ok bool) {
	var applied []func(io.Reader) (io.Reader, error)
	for encoding := range strings.SplitSeq(encodings, ",") {
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
	if len(applied) == 0 {
		return nil, true
	}
	d = &contentDecoder{output: output}
	d.resume, d.stop = iter.Pull(func(yield func(struct{}) bool) {
		d.err = d.decode(applied, &suspendingReader{d, yield})
	})
	return d, true
}

var errInflation = errors.New("the decoded answer is too large for its encoded size")

// Above minInflation bytes, an answer may inflate to maxInflation times its size. Events
// that are nearly equal compress far less.
const (
	minInflation = 4 << 20
	maxInflation = 250
)

func (d *contentDecoder) decode(applied []func(io.Reader) (io.Reader, error), decoded io.Reader) error {
	for _, open := range slices.Backward(applied) {
		var err error
		if decoded, err = open(decoded); err != nil {
			return err
		}
		if closer, ok := decoded.(interface{ Close() }); ok { // zstd
			defer closer.Close()
		}
	}
	buffer := make([]byte, bufferSize)
	for {
		n, err := decoded.Read(buffer)
		d.written += int64(n)
		d.output(buffer[:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if d.written > minInflation && d.written > maxInflation*d.read {
			return errInflation
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
