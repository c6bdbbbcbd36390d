// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// read decodes a body and returns the bytes that the decoder held.
func read(t *testing.T, open Open, body []byte, expected string) (held int64) {
	t.Helper()
	decoder, err := open(bytes.NewReader(body), func(n int64) error {
		held += n
		return nil
	})
	require.NoError(t, err)
	text, err := io.ReadAll(decoder)
	require.NoError(t, err)
	require.True(t, expected == string(text), "another text") //nolint:testifylint // a long one
	require.NoError(t, decoder.Close())
	return held
}

func encoded(t *testing.T, w io.WriteCloser, into *bytes.Buffer, texts ...string) []byte {
	t.Helper()
	for _, text := range texts {
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
		if flusher, ok := w.(interface{ Flush() error }); ok && len(texts) > 1 { // or a frame of zstd would have no window
			require.NoError(t, flusher.Flush())
		}
	}
	require.NoError(t, w.Close())
	return into.Bytes()
}

func TestOpen_Flate(t *testing.T) {
	var zip, z, bare bytes.Buffer
	w, err := flate.NewWriter(&bare, 5)
	require.NoError(t, err)
	require.EqualValues(t, 48<<10, read(t, Gzip, encoded(t, gzip.NewWriter(&zip), &zip, "text"), "text"))
	require.EqualValues(t, 48<<10, read(t, Zlib, encoded(t, zlib.NewWriter(&z), &z, "text"), "text"))
	require.EqualValues(t, 48<<10, read(t, ZlibOrDeflate, z.Bytes(), "text"))
	require.EqualValues(t, 48<<10, read(t, ZlibOrDeflate, encoded(t, w, &bare, "text"), "text"))
}

// What is held is at least the window that a stream declares, or the part of it that the text
// needs.
func TestBrotli_HoldsItsWindow(t *testing.T) {
	for bits := 10; bits <= 24; bits++ {
		for text, window := range map[string]int{"text": min(1<<bits, 512<<10), strings.Repeat("text", 1<<18): 1 << bits} {
			var body bytes.Buffer
			w := brotli.NewWriterOptions(&body, brotli.WriterOptions{Quality: 5, LGWin: bits})
			require.EqualValues(t, 256<<10+window, read(t, Brotli, encoded(t, w, &body, text), text), "%d bits, %d bytes", bits, len(text))
		}
	}
}

func TestZstd_HoldsTheNextLargerWindow(t *testing.T) {
	const fixed, smallest, small = 300 << 10, 64 << 10, 512 << 10
	open := Zstd(fixed, smallest, small)
	body := func(window int, texts ...string) []byte {
		var body bytes.Buffer
		w, err := zstd.NewWriter(&body, zstd.WithWindowSize(window))
		require.NoError(t, err)
		return encoded(t, w, &body, texts...)
	}
	for bits := 10; bits <= 23; bits++ {
		held := fixed + 9<<20 // 8 MiB, and 1 MiB that zstd adds to any window of at least 1 MiB
		switch window := 1 << bits; {
		case window <= smallest:
			held = fixed + 2*smallest
		case window <= small:
			held = fixed + 2*small
		}
		for range 2 { // a decoder of the pool is as good as new
			require.EqualValues(t, held, read(t, open, body(1<<bits, "te", "xt"), "text"), "%d bits", bits)
		}
	}
	require.EqualValues(t, fixed+2*smallest, read(t, open, body(8<<20, "text"), "text"), "a frame of known size")
	_, err := open(bytes.NewReader(body(16<<20, "te", "xt")), nil)
	require.EqualError(t, err, "the zstd window of 16777216 bytes is larger than 8388608; compress with a smaller one")
	_, err = open(strings.NewReader("no frame"), nil)
	require.ErrorContains(t, err, "invalid zstd header")
	_, err = open(strings.NewReader("\x28\xb5\x2f\xfd"), nil)
	require.ErrorIs(t, err, io.EOF)
	require.ErrorContains(t, err, "the zstd header is incomplete")
}

func TestOpen_ReturnsTheErrorOfHold(t *testing.T) {
	full := errors.New("full")
	for name, c := range map[string]struct {
		open Open
		body string
	}{
		"gzip":    {Gzip, "\x1f\x8b"},
		"zlib":    {Zlib, "\x78\x9c"},
		"deflate": {ZlibOrDeflate, "\x78\x9c"},
		"bare":    {ZlibOrDeflate, "\x2b\x49"},
		"brotli":  {Brotli, "\x0b"},
		"zstd":    {Zstd(1), "\x28\xb5\x2f\xfd\x00\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.open(strings.NewReader(c.body), func(int64) error { return full })
			require.Equal(t, full, err)
		})
	}
}
