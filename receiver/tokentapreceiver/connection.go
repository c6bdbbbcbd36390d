// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/tokenpulse/tokenpulse/internal/llmstream"
)

// connection is the connection to the upstream after an upgrade to WebSocket. Each
// direction is copied by a goroutine of its own, unlike the answer to a plain request.
type connection struct {
	io.ReadWriteCloser

	mutex    sync.Mutex // guards the exchange
	exchange *exchange
	decoder  *llmstream.Connection
}

func newConnection(x *exchange, body io.ReadWriteCloser, facts llmstream.Exchange, limits llmstream.Limits) *connection {
	c := &connection{ReadWriteCloser: body, exchange: x}
	c.decoder = llmstream.NewConnection(facts, limits, func(start int64, seen bool) llmstream.Response {
		return &call{exchange: x, trace: x.trace.sibling(), start: start, startUnseen: !seen}
	})
	return c
}

// Read reads what the server sends.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.ReadWriteCloser.Read(p)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.observe(p[:n], c.decoder.WriteServer)
	x := c.exchange
	// net.ErrClosed is from the tap's own Close. After any other error, or the end, the
	// upstream sends nothing more.
	x.complete = x.complete || err != nil && !errors.Is(err, net.ErrClosed) && !x.clientClosed
	return n, err
}

// Write forwards what the client sends.
func (c *connection) Write(p []byte) (int, error) {
	c.mutex.Lock()
	c.observe(p, c.decoder.WriteClient)
	c.mutex.Unlock()
	return c.ReadWriteCloser.Write(p)
}

func (c *connection) observe(p []byte, write func(p []byte, time int64)) {
	x := c.exchange
	now := x.now()
	if len(p) == 0 || x.stopped || x.expired.Load() {
		return
	}
	x.guard(func() { write(p, now) })
}

// CloseWrite is called when the client has closed its side.
func (c *connection) CloseWrite() error {
	c.mutex.Lock()
	x := c.exchange
	x.clientClosed = x.clientClosed || !x.complete
	c.mutex.Unlock()
	if half, ok := c.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported // then both sides are closed
}

// finish ends the calls that are still open.
func (c *connection) finish() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	x := c.exchange
	x.clientClosed = x.clientClosed || !x.complete
	x.guard(func() { c.decoder.End(x.now()) })
	x.stopped = true
	if !c.decoder.Recognised() {
		x.receiver.telemetry.ReceiverTokenTapExchangesUnrecognised.Add(context.Background(), 1)
	}
}
