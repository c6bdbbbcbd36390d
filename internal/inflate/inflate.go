// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package inflate opens decoders of compressed bodies, whose memory the caller can limit.
package inflate

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
)

// Open opens a decoder of body. It calls hold before about so many bytes are allocated, and
// returns the error of hold. A decoder of brotli calls hold in Read, too. The caller releases
// the bytes after Close.
type Open func(body io.Reader, hold func(bytes int64) error) (io.ReadCloser, error)

// flateBytes is about what a decoder of gzip, zlib or deflate holds.
const flateBytes = 48 << 10

// Gzip is an Open.
func Gzip(body io.Reader, hold func(bytes int64) error) (io.ReadCloser, error) {
	if err := hold(flateBytes); err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(body)
	if err != nil {
		return nil, err // a nil reader would not be a nil interface
	}
	return reader, nil
}

// Zlib is an Open.
func Zlib(body io.Reader, hold func(bytes int64) error) (io.ReadCloser, error) {
	if err := hold(flateBytes); err != nil {
		return nil, err
	}
	return zlib.NewReader(body)
}

// ZlibOrDeflate is an Open of zlib, which HTTP calls deflate, and of bare deflate, which some
// servers send.
func ZlibOrDeflate(body io.Reader, hold func(bytes int64) error) (io.ReadCloser, error) {
	buffered := bufio.NewReader(body)
	head, err := buffered.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return Zlib(buffered, hold)
	}
	if err := hold(flateBytes); err != nil {
		return nil, err
	}
	return flate.NewReader(buffered), nil
}
