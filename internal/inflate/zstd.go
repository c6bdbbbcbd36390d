// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow is the maximum window of zstd, which RFC 8878 recommends for
// interoperability and RFC 9659 requires of HTTP. Encoders need an option to exceed it.
const maxZstdWindow = 8 << 20

// zstdDecoders is a pool of decoders with the same limit. The first frame of a body
// selects the pool; further frames must keep its limit, because only that is reserved.
type zstdDecoders struct {
	maxWindow uint64
	memory    int64 // of a decoder with the maximum window
	pool      sync.Pool
}

// Zstd returns an Open with a pool of decoders for each window, and for the maximum of 8 MiB.
// Windows ascend. Fixed is about what a decoder holds beside its buffer for a window.
func Zstd(fixed int64, windows ...uint64) Open {
	var pools []*zstdDecoders
	for _, window := range append(windows, maxZstdWindow) {
		pools = append(pools, &zstdDecoders{maxWindow: window, memory: fixed + int64(window+min(window, 1<<20))})
	}
	return func(body io.Reader, hold func(bytes int64) error) (io.ReadCloser, error) {
		start := bufio.NewReader(body)
		window, err := zstdWindow(start)
		if err != nil {
			return nil, err
		}
		for _, decoders := range pools {
			if window > decoders.maxWindow {
				continue
			}
			if err := hold(decoders.memory); err != nil {
				return nil, err
			}
			return decoders.open(start)
		}
		return nil, fmt.Errorf("the zstd window of %d bytes is larger than %d; compress with a smaller one", window, maxZstdWindow)
	}
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
		if decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(z.maxWindow)); err != nil {
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
