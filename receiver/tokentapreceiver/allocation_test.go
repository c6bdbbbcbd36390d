// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package tokentapreceiver

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// What a chunk needs between its read and the next one allocates only as the timeline grows.
func TestDecode_DoesNotAllocatePerChunk(t *testing.T) {
	tap := start(t, answerChat)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tap.url+chatPath, http.NoBody)
	require.NoError(t, err)
	x := tap.receiver.begin(tap.receiver.routes[0], request)
	x.decoding.decoder = llmstream.NewDecoder(llmstream.AnswerHead{Path: chatPath, Status: 200, ContentType: "text/event-stream"}, llmstream.Limits{EventBytes: 1 << 20}, x.decoding.call.Chunk)
	defer x.finish()
	body := answerBody{ReadCloser: io.NopCloser(repeated(tokenEvent)), exchange: x}
	p := make([]byte, bufferSize)
	allocated := testing.AllocsPerRun(1000, func() { _, _ = body.Read(p) })
	x.decode()
	require.Zero(t, allocated) // rounded down: the buffers of the timeline double
	require.Equal(t, 1001, x.decoding.call.line.Len())
}
