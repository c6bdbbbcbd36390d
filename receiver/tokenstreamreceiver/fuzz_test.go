// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/inflate"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// FuzzDecompression reads a body with the limited decoders and with those of the
// libraries. Each reserves its memory, ends within the limit of inflation, and returns
// the bytes of the library, or an error.
func FuzzDecompression(f *testing.F) {
	for encoding, kind := range map[string]uint8{"gzip": 0, "zlib": 1, "zstd": 2} {
		whole := compress(f, encoding, []byte(startLine("s")+"\n"))
		f.Add(kind, whole)
		f.Add(kind, whole[:len(whole)/2])
		f.Add(kind, []byte("not a header"))
		f.Add(kind, append(whole, whole...))
		f.Add(kind, compress(f, encoding, bytes.Repeat([]byte{' '}, 4<<20)))
	}
	f.Add(uint8(2), []byte("\x28\xb5\x2f\xfd\x00\xff"))                 // a huge window
	f.Add(uint8(2), []byte("\x50\x2a\x4d\x18\x02\x00\x00\x00\x00\x00")) // a frame to skip
	store := assembly.NewStore(assembly.Limits{MaxStreams: 1, MaxMemory: 16 << 20}, nil)
	f.Fuzz(func(t *testing.T, kind uint8, compressed []byte) {
		open := [...]inflate.Open{inflate.Gzip, inflate.Zlib, openZstd}[kind%3]
		arrived := &timedBody{
			ReadCloser: io.NopCloser(iotest.HalfReader(bytes.NewReader(compressed))), closing: context.Background(), done: true,
		}
		body := &decoder{body: arrived, open: open, memory: reservation{store: store}}
		got, err := io.ReadAll(&inflatedBody{Reader: body, compressed: arrived})
		require.LessOrEqual(t, int64(len(got)), freeInflation+maxInflation*arrived.received)
		require.NoError(t, body.Close())
		require.Zero(t, store.Memory(), "memory stays reserved")

		want, errLibrary := decompress(kind, compressed, len(got)+1)
		require.True(t, bytes.HasPrefix(want, got) || bytes.HasPrefix(got, want), "other bytes")
		if err == nil {
			require.NoError(t, errLibrary)
			require.Len(t, got, len(want))
		}
	})
}

// decompress returns what the library reads from a body, up to a limit.
func decompress(kind uint8, compressed []byte, limit int) ([]byte, error) {
	var body io.Reader
	var err error
	switch source := bytes.NewReader(compressed); kind % 3 {
	case 0:
		body, err = gzip.NewReader(source)
	case 1:
		body, err = zlib.NewReader(source)
	default:
		var z *zstd.Decoder
		if z, err = zstd.NewReader(source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20)); err == nil {
			defer z.Close()
			body = z
		}
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(body, int64(limit)))
}

// FuzzLines splits a body into lines, whatever the sizes of the reads in which it
// arrives.
func FuzzLines(f *testing.F) {
	f.Add("a\nb\r\n\n  \nccc", []byte{1, 2, 3})
	f.Add(strings.Repeat("x", 21)+"\n"+strings.Repeat("y", 20)+"\r\n"+strings.Repeat("z", 9000), []byte{255})
	f.Add(strings.Repeat(" ", 300)+"\n{", []byte{0, 0, 7})
	store := assembly.NewStore(assembly.Limits{MaxStreams: 1, MaxMemory: 1 << 20}, nil)
	f.Fuzz(func(t *testing.T, body string, sizes []byte) {
		const longest = 20
		lines := newLineReader(longest, store)
		require.NoError(t, lines.reset(&pieces{body, sizes}))
		var got []string
		var err error
		for err == nil {
			for line, ok := lines.next(); ok; line, ok = lines.next() {
				got = append(got, string(line)) // "" for a line that is too long
			}
			err = lines.fill()
			require.LessOrEqual(t, len(lines.buffer), readSize)
		}
		require.ErrorIs(t, err, io.EOF)
		lines.close()
		require.Zero(t, store.Memory())

		var want []string
		for line := range strings.Lines(body) {
			line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
			switch {
			case len(line) > longest:
				want = append(want, "")
			case strings.TrimSpace(line) != "":
				want = append(want, line)
			}
		}
		require.Equal(t, want, got)
	})
}

// pieces is a body that arrives in pieces of these sizes, in turns.
type pieces struct {
	body  string
	sizes []byte
}

// Read implements io.Reader.
func (p *pieces) Read(into []byte) (int, error) {
	if p.body == "" {
		return 0, io.EOF
	}
	size := len(p.body)
	if len(p.sizes) > 0 {
		size = 1 + int(p.sizes[0])
		p.sizes = append(p.sizes[1:], p.sizes[0])
	}
	n := copy(into, p.body[:min(size, len(p.body))])
	p.body = p.body[n:]
	return n, nil
}
