// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/servertest"
)

// The meter holds the same, whatever the pieces in which frames arrive. Expected values
// are counted by hand.
func TestMeteredConn_HoldsUnfinishedMessages(t *testing.T) {
	message := func(size, sent int) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(size)), make([]byte, sent)...)
	}
	headers := func(f *http2.Framer, id uint32) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: servertest.CallHeaders(t, tokenpulsev1.TokenStreamService_Export_FullMethodName), EndHeaders: true})
	}
	tests := map[string]struct {
		received func(*http2.Framer)
		sent     func(*http2.Framer)
		held     int64 // without frameMemory
	}{
		"nothing arrived":     {received: func(f *http2.Framer) { headers(f, 1); _ = f.WriteData(1, false, message(1000, 0)) }},
		"a part of a message": {received: func(f *http2.Framer) { headers(f, 1); _ = f.WriteData(1, false, message(1000, 400)) }, held: 400},
		"with padding": {received: func(f *http2.Framer) {
			headers(f, 1)
			_ = f.WriteDataPadded(1, false, message(1000, 400), make([]byte, 200))
		}, held: 400},
		"nothing but padding": {received: func(f *http2.Framer) { headers(f, 1); _ = f.WriteDataPadded(1, false, nil, make([]byte, 200)) }},
		"after padding": {received: func(f *http2.Framer) {
			headers(f, 1)
			_ = f.WriteDataPadded(1, false, message(500, 0), make([]byte, 9))
			_ = f.WriteData(1, false, make([]byte, 300))
		}, held: 300},
		"a whole message":  {received: func(f *http2.Framer) { headers(f, 1); _ = f.WriteData(1, true, message(400, 400)) }},
		"an empty message": {received: func(f *http2.Framer) { headers(f, 1); _ = f.WriteData(1, true, message(0, 0)) }},
		"the second message": {received: func(f *http2.Framer) {
			headers(f, 1)
			_ = f.WriteData(1, false, append(message(400, 400), message(70, 60)...))
		}, held: 60},
		"two calls": {received: func(f *http2.Framer) {
			headers(f, 1)
			headers(f, 3)
			_ = f.WriteData(1, false, message(99, 50))
			_ = f.WriteData(3, false, message(99, 7))
		}, held: 57},
		"the client resets": {received: func(f *http2.Framer) {
			headers(f, 1)
			_ = f.WriteData(1, false, message(99, 50))
			_ = f.WriteRSTStream(1, http2.ErrCodeCancel)
		}},
		"data after the reset": {received: func(f *http2.Framer) {
			headers(f, 1)
			_ = f.WriteRSTStream(1, http2.ErrCodeCancel)
			_ = f.WriteData(1, false, message(99, 50))
		}},
		"data without a call": {received: func(f *http2.Framer) { _ = f.WriteData(1, false, message(99, 50)) }},
		"frames of the connection": {received: func(f *http2.Framer) {
			headers(f, 1)
			_ = f.WritePing(false, [8]byte{1})
			_ = f.WriteWindowUpdate(0, 99)
			_ = f.WriteData(1, false, message(99, 50))
		}, held: 50},
		"the server sends headers":   {received: func(f *http2.Framer) { headers(f, 1); _ = f.WriteData(1, false, message(99, 50)) }, sent: func(f *http2.Framer) { headers(f, 1) }, held: 50},
		"the server resets the call": {received: func(f *http2.Framer) { headers(f, 1); _ = f.WriteData(1, false, message(99, 50)) }, sent: func(f *http2.Framer) { _ = f.WriteRSTStream(1, 0) }},
		"the server sends trailers": {
			received: func(f *http2.Framer) { headers(f, 1); _ = f.WriteData(1, false, message(99, 50)) },
			sent: func(f *http2.Framer) {
				_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: servertest.CallHeaders(t, "x"), EndHeaders: true, EndStream: true})
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var received, sent bytes.Buffer
			received.WriteString(http2.ClientPreface)
			test.received(http2.NewFramer(&received, nil))
			if test.sent != nil {
				test.sent(http2.NewFramer(&sent, nil))
			}
			for size := 1; size < received.Len(); size += 1 + rand.IntN(5) {
				store := assembly.NewStore(assembly.Limits{MaxMemory: 1 << 20}, func() time.Duration { return 0 })
				c := newMeteredConn(nil, store, nil)
				inPieces(received.Bytes(), size, func(p []byte) { c.received.split(p, c.receive) })
				inPieces(sent.Bytes(), size, func(p []byte) { c.sent.split(p, c.send) })
				var held int64
				for _, call := range c.calls {
					held += call.held
				}
				require.GreaterOrEqual(t, store.Memory(), held)
				if test.held == 0 {
					require.LessOrEqual(t, held, int64(5*frameMemory), "pieces of %d", size) // of the prefix
					continue
				}
				require.GreaterOrEqual(t, held, test.held, "pieces of %d", size)
				require.LessOrEqual(t, held, test.held+frameMemory*(3+int64(received.Len()/size)), "pieces of %d", size)
			}
		})
	}
}

func inPieces(p []byte, size int, visit func([]byte)) {
	for len(p) > 0 {
		n := min(size, len(p))
		visit(p[:n])
		p = p[n:]
	}
}
