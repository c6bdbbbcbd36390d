// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package exposition

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
)

// Body is what a response has. Any number of goroutines may write it at once.
type Body struct {
	blocks [][]byte     // compressed by s2
	zipped bytes.Buffer // instead of blocks
	size   int
}

var zippers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // samples repeat so much that the level matters little
	return w
}}

// gzip compresses the blocks for a client, and releases them.
func (b *Body) gzip() error {
	w := zippers.Get().(*gzip.Writer)
	defer func() {
		w.Reset(nil) // releases the result
		zippers.Put(w)
	}()
	w.Reset(&b.zipped)
	var raw []byte
	for i, block := range b.blocks {
		var err error
		if raw, err = s2.Decode(raw[:cap(raw)], block); err != nil {
			return err
		}
		if _, err = w.Write(raw); err != nil {
			return err
		}
		b.blocks[i] = nil
	}
	b.blocks = nil
	err := w.Close()
	b.size = b.zipped.Len()
	return err
}

// Size returns the number of bytes that WriteTo writes, except for a few per family.
func (b *Body) Size() int { return b.size }

// WriteTo implements io.WriterTo.
func (b *Body) WriteTo(w io.Writer) (n int64, err error) {
	if b.blocks == nil {
		written, err := w.Write(b.zipped.Bytes())
		return int64(written), err
	}
	var raw []byte
	for _, block := range b.blocks {
		if raw, err = s2.Decode(raw[:cap(raw)], block); err != nil {
			return n, err
		}
		written, err := w.Write(raw)
		n += int64(written)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
