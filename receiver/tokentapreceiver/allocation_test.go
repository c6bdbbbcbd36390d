// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package tokentapreceiver

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// What a chunk needs between its read and the next one allocates only as the timeline grows.
func TestDecode_DoesNotAllocatePerChunk(t *testing.T) {
	p := start(t, answerChat)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+chatPath, http.NoBody)
	require.NoError(t, err)
	x := p.receiver.begin(p.receiver.routes[0], request)
	x.decoding.decoder = llmstream.NewDecoder(llmstream.AnswerHead{Path: chatPath, Status: 200, ContentType: "text/event-stream"}, llmstream.Limits{EventBytes: 1 << 20}, x.decoding.call.Chunk)
	defer x.finish()
	event := []byte(tokenEvent)
	allocated := testing.AllocsPerRun(1000, func() {
		x.readAt = x.decoding.now()
		x.sent(event, nil)
		x.flushed(nil)
	})
	require.Zero(t, allocated) // rounded down: the buffers of the timeline double
	require.Equal(t, 1001, x.decoding.call.line.Len())
}
