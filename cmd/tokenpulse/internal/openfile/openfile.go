// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package openfile opens the files that commands read: it expands folders, decompresses,
// and counts bytes for a progress bar.
package openfile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/tokenpulse/tokenpulse/internal/inflate"
)

const (
	// Stdin is the path of standard input.
	Stdin = "-"
	// PrefixBytes is how many bytes Prefix returns of a longer file.
	PrefixBytes = 4096

	bufferBytes = 64 << 10
)

// File is an open input. Reads return the content, decompressed if it is gzip or zstd. A
// decompression error is returned after the content before it.
type File struct {
	*bufio.Reader
	name    string
	closers []io.Closer
}

// Open opens a file, or standard input for "-". It adds the bytes that are read, before
// decompression, to read, which may be nil. If ctx is cancelled, reads from a pipe or a
// terminal return its error at once; reads from a regular file go on.
func Open(ctx context.Context, path string, read *atomic.Int64) (*File, error) {
	if path == Stdin {
		return New(ctx, "stdin", os.Stdin, read), nil
	}
	source, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	file := New(ctx, path, source, read)
	file.closers = append(file.closers, source)
	return file, nil
}

// New returns a File that reads source. Errors of its readers begin with name.
func New(ctx context.Context, name string, source io.Reader, read *atomic.Int64) *File {
	if !isRegular(source) {
		source = &interruptible{ctx: ctx, source: source}
	}
	if read == nil {
		read = new(atomic.Int64)
	}
	file := &File{name: name}
	file.decompress(bufio.NewReaderSize(&counting{source: source, read: read}, bufferBytes))
	return file
}

// isRegular reports whether reads from source return soon.
func isRegular(source io.Reader) bool {
	file, ok := source.(*os.File)
	if !ok {
		return true
	}
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// Name returns the path, or "stdin".
func (f *File) Name() string { return f.name }

// Prefix returns the first bytes of the content, at most PrefixBytes, before they are read.
// It returns fewer bytes of a shorter file, and of a damaged one.
func (f *File) Prefix() []byte {
	prefix, _ := f.Peek(PrefixBytes) // the error returns with the next read
	return prefix
}

// Close closes the file, except standard input.
func (f *File) Close() error {
	var errs []error
	for _, closer := range f.closers {
		errs = append(errs, closer.Close())
	}
	return errors.Join(errs...)
}

// openZstd has no smaller windows than the maximum, because only one file is open at a time.
var openZstd = inflate.Zstd(0)

// decompress sets the reader of the content. The first bytes decide, not the file's name,
// which log rotation may have changed.
func (f *File) decompress(source *bufio.Reader) {
	head, _ := source.Peek(4) // the error returns with the next read
	var open inflate.Open
	var format string
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		open, format = inflate.Gzip, "gzip"
	case IsZstd(head):
		open, format = openZstd, "zstd"
	default:
		f.Reader = source
		return
	}
	decoder, err := open(source, func(int64) error { return nil })
	if err != nil {
		f.Reader = bufio.NewReader(broken{format, err})
		return
	}
	f.closers = append(f.closers, decoder)
	f.Reader = bufio.NewReaderSize(&decompressed{decoder: decoder, format: format}, bufferBytes)
}

// IsZstd reports whether b begins like a frame of zstd.
func IsZstd(b []byte) bool {
	skippable := len(b) >= 4 && b[0]&0xf0 == 0x50 && bytes.Equal(b[1:4], []byte{0x2a, 0x4d, 0x18})
	return skippable || bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd})
}

// decompressed names the format in the errors of a decoder. It repeats an error, which a
// decoder of zstd does not.
type decompressed struct {
	decoder io.Reader
	format  string
	err     error
}

// Read implements io.Reader.
func (d *decompressed) Read(p []byte) (n int, err error) {
	if d.err != nil {
		return 0, d.err
	}
	n, d.err = d.decoder.Read(p)
	if d.err != nil && !errors.Is(d.err, io.EOF) {
		d.err = broken{d.format, d.err}
	}
	return n, d.err
}

// broken is the error of compressed data, and the content of data whose header is damaged.
type broken struct {
	format string
	err    error
}

// Read implements io.Reader.
func (b broken) Read([]byte) (int, error) { return 0, b }

// Error does not let errors.Is find an io.EOF, which a decoder may give as the cause.
func (b broken) Error() string {
	return fmt.Sprintf("the %s data is damaged or ends early: %v", b.format, b.err)
}

// counting adds the bytes that are read to a counter, and remembers the end, because a
// terminal would wait for a second one.
type counting struct {
	source io.Reader
	read   *atomic.Int64
	err    error
}

// Read implements io.Reader.
func (c *counting) Read(p []byte) (n int, err error) {
	if c.err != nil {
		return 0, c.err
	}
	n, c.err = c.source.Read(p)
	c.read.Add(int64(n))
	return n, c.err
}
