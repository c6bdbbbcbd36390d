// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package servertest has what tests of the server send.
package servertest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2/hpack"
)

// Compress returns a body in a content encoding: gzip, zstd or, for all others, zlib.
func Compress(t testing.TB, encoding string, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser = zlib.NewWriter(&out)
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		var err error
		w, err = zstd.NewWriter(&out)
		require.NoError(t, err)
	}
	_, err := w.Write(body)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// CallHeaders returns the header block of a gRPC call.
func CallHeaders(t testing.TB, method string) []byte {
	t.Helper()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", method},
		{":authority", "x"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		require.NoError(t, encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	return block.Bytes()
}
