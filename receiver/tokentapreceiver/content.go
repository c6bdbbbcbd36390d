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
	"net/http"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

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

// openDecoder opens a decoder of a content encoding. Before, it calls hold with about the
// bytes that the decoder will hold, and returns its error.
type openDecoder func(r io.Reader, hold func(n int) error) (io.Reader, error)

// openDecoders has a decoder for each supported content encoding.
var openDecoders = map[string]openDecoder{
	"gzip":    openGzip,
	"x-gzip":  openGzip,
	"deflate": openDeflate,
	"br":      openBrotli,
	"zstd":    openZstd,
}

// About the bytes that a decoder holds. Those of brotli and zstd hold a window as well.
const (
	flateBytes  = 48 << 10
	brotliBytes = 256 << 10
	zstdBytes   = 512 << 10
)

func openGzip(r io.Reader, hold func(n int) error) (io.Reader, error) {
	if err := hold(flateBytes); err != nil {
		return nil, err
	}
	return gzip.NewReader(r)
}

// openDeflate accepts a zlib stream, as HTTP says, and a bare deflate stream, which some
// servers send.
func openDeflate(r io.Reader, hold func(n int) error) (io.Reader, error) {
	if err := hold(flateBytes); err != nil {
		return nil, err
	}
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

func openBrotli(r io.Reader, hold func(n int) error) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	head, err := buffered.Peek(1)
	if err != nil {
		return nil, err
	}
	window := 1 << brotliWindowBits(head[0])
	first := min(window, firstWindow)
	if err := hold(brotliBytes + first); err != nil {
		return nil, err
	}
	return &growingWindow{Reader: brotli.NewReader(buffered), left: first, rest: window - first, hold: hold}, nil
}

// firstWindow is what is held of a window of brotli at first. Most answers are shorter than
// their windows, and the decoder reserves no more than the text needs.
const firstWindow = 512 << 10

// growingWindow reads a decoder whose window grows with the text.
type growingWindow struct {
	io.Reader
	left int // bytes until the rest of the window is needed
	rest int // bytes of the window that are not held yet
	hold func(n int) error
}

// Read implements io.Reader.
func (g *growingWindow) Read(p []byte) (int, error) {
	if g.left <= 0 && g.rest > 0 {
		if err := g.hold(g.rest); err != nil {
			return 0, err
		}
		g.rest = 0
	}
	n, err := g.Reader.Read(p)
	g.left -= n
	return n, err
}

// brotliWindowBits returns the base 2 logarithm of the window that a stream declares in its
// first byte (RFC 7932, section 9.1).
func brotliWindowBits(first byte) int {
	switch low, high := int(first>>1&7), int(first>>4&7); {
	case first&1 == 0:
		return 16
	case low != 0:
		return 17 + low
	case high != 0:
		return 8 + high
	default:
		return 17
	}
}

// maxZstdWindow is the largest window of zstd that HTTP allows, by RFC 9659. minZstdWindow is
// for later frames, whose windows may be larger than that of the first.
const (
	maxZstdWindow = 8 << 20
	minZstdWindow = 256 << 10
)

func openZstd(r io.Reader, hold func(n int) error) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	if _, err := buffered.Peek(1); err != nil {
		return nil, err
	}
	var header zstd.Header
	window := uint64(maxZstdWindow)
	head, _ := buffered.Peek(buffered.Buffered()) // no error: these bytes are there
	if err := header.Decode(head); err == nil && !header.Skippable {
		window = header.WindowSize
		if header.SingleSegment {
			window = header.FrameContentSize
		}
		window = min(max(window, minZstdWindow), maxZstdWindow)
	}
	if err := hold(zstdBytes + int(window+min(window, 1<<20))); err != nil {
		return nil, err
	}
	return zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
}

// maxEncodings is the number of content encodings of one body that are decoded. It is that
// of curl.
const maxEncodings = 5

// contentEncodings are the decoders of the encodings of a body, in the order in which the
// encodings were applied.
type contentEncodings []openDecoder

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
	var closers []func()
	held := 0
	hold := func(n int) error {
		if !memory.Take(n) {
			return errNoMemory
		}
		held += n
		return nil
	}
	release = func() {
		for _, closer := range closers {
			closer()
		}
		memory.Give(held)
	}
	decoded = encoded
	for _, open := range slices.Backward(applied) {
		if decoded, err = open(decoded, hold); err != nil {
			release()
			return nil, nil, err
		}
		if closer, ok := decoded.(interface{ Close() }); ok { // zstd
			closers = append(closers, closer.Close)
		}
		decoded = &outputLimit{Reader: decoded, tooLarge: tooLarge}
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
