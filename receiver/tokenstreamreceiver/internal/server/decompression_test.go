// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"io"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/inflate"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/servertest"
)

// FuzzDecompression reads a body with the limited decoders and with those of the
// libraries. Each reserves its memory, ends within the limit of inflation, and returns
// the bytes of the library, or an error.
func FuzzDecompression(f *testing.F) {
	for encoding, kind := range map[string]uint8{"gzip": 0, "zlib": 1, "zstd": 2} {
		whole := servertest.Compress(f, encoding, []byte(`{"event":"start","stream_id":"s","time_unix_nano":"1000000000"}`+"\n"))
		f.Add(kind, whole)
		f.Add(kind, whole[:len(whole)/2])
		f.Add(kind, []byte("not a header"))
		f.Add(kind, append(whole, whole...))
		f.Add(kind, servertest.Compress(f, encoding, bytes.Repeat([]byte{' '}, 4<<20)))
	}
	f.Add(uint8(2), []byte("\x28\xb5\x2f\xfd\x00\xff"))                 // a huge window
	f.Add(uint8(2), []byte("\x50\x2a\x4d\x18\x02\x00\x00\x00\x00\x00")) // a frame to skip
	store := assembly.NewStore(assembly.Limits{MaxStreams: 1, MaxMemory: 16 << 20}, nil)
	f.Fuzz(func(t *testing.T, kind uint8, compressed []byte) {
		open := [...]inflate.Open{inflate.Gzip, inflate.Zlib, openZstd}[kind%3]
		arrived := &timedBody{
			ReadCloser: io.NopCloser(iotest.HalfReader(bytes.NewReader(compressed))), closing: context.Background(), done: true,
		}
		body := &decoder{body: arrived, open: open, memory: ingest.Reservation{Store: store}}
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
