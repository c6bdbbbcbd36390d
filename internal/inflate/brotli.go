// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bufio"
	"io"

	"github.com/andybalholm/brotli"
)

const (
	// brotliBytes is about what a decoder of brotli holds beside its window.
	brotliBytes = 256 << 10
	// firstWindow is what is held of a window at first. Most answers are shorter than their
	// windows, and the decoder reserves no more than the text needs.
	firstWindow = 512 << 10
)

// Brotli is an Open.
func Brotli(body io.Reader, hold func(bytes int64) error) (io.ReadCloser, error) {
	buffered := bufio.NewReader(body)
	head, err := buffered.Peek(1)
	if err != nil {
		return nil, err
	}
	window := int64(1) << brotliWindowBits(head[0])
	first := min(window, firstWindow)
	if err := hold(brotliBytes + first); err != nil {
		return nil, err
	}
	return io.NopCloser(&growingWindow{Reader: brotli.NewReader(buffered), left: int(first), rest: window - first, hold: hold}), nil
}

// growingWindow reads a decoder whose window grows with the text.
type growingWindow struct {
	io.Reader
	left int   // bytes until the rest of the window is needed
	rest int64 // bytes of the window that are not held yet
	hold func(bytes int64) error
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
