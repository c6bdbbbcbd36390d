// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package tokentapreceiver

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a chunk needs between its read and the next one allocates only as the timeline grows.
func TestDecode_DoesNotAllocatePerChunk(t *testing.T) {
	for name, change := range map[string]func(*Config){"plain": func(*Config) {}, "judged": withLiveness} {
		t.Run(name, func(t *testing.T) {
			x := start(t, answerChat, change).beginChat()
			if x.route.engine != nil {
				x.decoding.openRequest(true)
			}
			body := answerBody{ReadCloser: io.NopCloser(repeated(tokenEvent)), exchange: x}
			p := make([]byte, bufferSize)
			allocated := testing.AllocsPerRun(1000, func() { _, _ = body.Read(p) })
			x.decode()
			require.Zero(t, allocated) // rounded down: the buffers of the timeline double
			require.Equal(t, 1001, x.decoding.call.line.Len())
		})
	}
}
