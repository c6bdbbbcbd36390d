// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/collector/consumer/consumertest"
)

// What the tap does with a chunk, without its forwarding, and what the verdict on its engine adds.
func BenchmarkChunk(b *testing.B) {
	for name, change := range map[string]func(*Config){"plain": func(*Config) {}, "judged": withLiveness} {
		b.Run(name, func(b *testing.B) {
			upstream := httptest.NewServer(http.NotFoundHandler())
			defer upstream.Close()
			p := startAt(b, consumertest.NewNop(), func(cfg *Config) { cfg.Upstream.Endpoint = upstream.URL }, change)
			x := p.beginChat()
			if x.route.engine != nil {
				x.decoding.openRequest(true)
			}
			body := answerBody{ReadCloser: io.NopCloser(repeated(tokenEvent)), exchange: x}
			buffer := make([]byte, bufferSize)
			for chunks := 0; b.Loop(); chunks++ {
				_, _ = body.Read(buffer)
				if chunks%blockChunks == blockChunks-1 { // far from the limits
					x.decode()
					x.decoding.memory.Give(blockBytes * x.decoding.call.line.Len() / blockChunks)
					x.decoding.call.line.Reset()
				}
			}
		})
	}
}
