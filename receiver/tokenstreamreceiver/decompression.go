// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// The decoders of the Collector allocate their buffers outside of any limit. For zstd
// that is up to 512 MiB, which a header of ten bytes can ask for.

// deflateMemory is the memory of a decoder of gzip, zlib or deflate.
const deflateMemory = 48 << 10

// maxZstdWindow is the maximum window of zstd, which RFC 8878 recommends for
// interoperability. Encoders need an option to exceed it.
const maxZstdWindow = 8 << 20

// zstdDecoders is a pool of decoders with the same limit. The first frame of a body
// selects the pool; further frames must keep its limit, because only that is reserved.
type zstdDecoders struct {
	maxWindow uint64
	memory    int64 // of a decoder with the maximum window
	pool      sync.Pool
}

var (
	smallZstd = &zstdDecoders{maxWindow: 1 << 20, memory: 2<<20 + 256<<10}
	largeZstd = &zstdDecoders{maxWindow: maxZstdWindow, memory: maxZstdWindow + 1<<20 + 256<<10}
)

// decoders returns decoders for the enabled algorithms that reserve their memory.
func decoders(algorithms []string, store *assembly.Store) []confighttp.ToServerOption {
	var options []confighttp.ToServerOption
	add := func(name string, open openDecoder) {
		if slices.Contains(algorithms, name) {
			options = append(options, confighttp.WithDecoder(name, func(body io.ReadCloser) (io.ReadCloser, error) {
				return &decoder{body: body, open: open, memory: reservation{store: store}}, nil
			}))
		}
	}
	add("gzip", openGzip)
	add("zlib", openZlib)
	add("deflate", openZlib)
	add("zstd", openZstd)
	return options
}

// openDecoder reads a header and reserves the memory of the decoder that it returns.
type openDecoder func(body io.Reader, memory *reservation) (io.ReadCloser, error)

// decoder decompresses a body. It starts with the first read, so that errors and
// refusals reach the handler.
type decoder struct {
	body   io.Reader
	open   openDecoder
	memory reservation
	opened io.ReadCloser
	err    error // of open
}

// Read implements io.Reader.
func (d *decoder) Read(p []byte) (int, error) {
	if d.opened == nil && d.err == nil {
		d.opened, d.err = d.open(d.body, &d.memory)
		if errors.Is(d.err, io.EOF) { // which would be the end of a whole body
			d.err = io.ErrUnexpectedEOF
		}
	}
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.opened.Read(p)
	if err != nil {
		d.err = err
		_ = d.Close() // the pipeline may take much longer than the body
	}
	return n, err
}

// Close implements io.Closer. It leaves closing the body to the server.
func (d *decoder) Close() error {
	defer d.memory.free()
	if d.opened == nil {
		return nil
	}
	opened := d.opened
	d.opened = nil
	if d.err == nil {
		d.err = errDecoderClosed
	}
	return opened.Close()
}

var errDecoderClosed = errors.New("the decoder is closed")

func openGzip(body io.Reader, memory *reservation) (io.ReadCloser, error) {
	if err := memory.add(deflateMemory); err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(body)
	if err != nil {
		return nil, err // a nil reader would not be a nil interface
	}
	return reader, nil
}

func openZlib(body io.Reader, memory *reservation) (io.ReadCloser, error) {
	if err := memory.add(deflateMemory); err != nil {
		return nil, err
	}
	return zlib.NewReader(body)
}

func openZstd(body io.Reader, memory *reservation) (io.ReadCloser, error) {
	start := bufio.NewReader(body)
	window, err := zstdWindow(start)
	if err != nil {
		return nil, err
	}
	decoders := smallZstd
	if window > decoders.maxWindow {
		decoders = largeZstd
	}
	if window > decoders.maxWindow {
		return nil, fmt.Errorf("the zstd window of %d bytes is larger than %d; compress with a smaller one", window, decoders.maxWindow)
	}
	if err := memory.add(decoders.memory); err != nil {
		return nil, err
	}
	return decoders.open(start)
}

// zstdWindow returns the window size of the frame that begins in body. It is the size of
// the content if there is no other.
func zstdWindow(body *bufio.Reader) (uint64, error) {
	const shortest = 6
	for size := shortest; ; size++ {
		beginning, errRead := body.Peek(size)
		var header zstd.Header
		err := header.Decode(beginning)
		switch {
		case err == nil && header.Skippable:
			return maxZstdWindow, nil
		case err == nil && header.SingleSegment:
			return header.FrameContentSize, nil
		case err == nil:
			return header.WindowSize, nil
		case !errors.Is(err, io.ErrUnexpectedEOF):
			return 0, fmt.Errorf("invalid zstd header: %w", err)
		case errRead != nil:
			return 0, fmt.Errorf("the zstd header is incomplete: %w", errRead)
		}
	}
}

func (z *zstdDecoders) open(body io.Reader) (io.ReadCloser, error) {
	decoder, ok := z.pool.Get().(*zstd.Decoder)
	if !ok {
		var err error
		// Concurrency 1 decodes in Read, without goroutines.
		if decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(z.maxWindow)); err != nil {
			return nil, err
		}
	}
	if err := decoder.Reset(body); err != nil {
		return nil, err
	}
	return &zstdBody{decoder, &z.pool}, nil
}

// zstdBody is a decoder in use.
type zstdBody struct {
	*zstd.Decoder
	pool *sync.Pool
}

// Close implements io.Closer.
func (b *zstdBody) Close() error {
	err := b.Reset(nil)
	if err == nil {
		b.pool.Put(b.Decoder)
	}
	return err
}
