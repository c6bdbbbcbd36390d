// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// upstreamConn is a connection to an upstream. When it ends, nothing waits for the body that is sent on it
// any more, but net/http goes on reading the body before it returns the error: for ever, if the client
// sends nothing. So the end of the connection limits this wait.
type upstreamConn struct {
	net.Conn
	sending atomic.Pointer[requestCopy]
}

// Close implements net.Conn. The transport calls it, also when the upstream closed the connection.
func (c *upstreamConn) Close() error {
	err := c.Conn.Close()
	if body := c.sending.Load(); body != nil {
		body.limit()
	}
	return err
}

// stop ends the sending of a body, if the connection has not begun to send another one.
func (c *upstreamConn) stop(body *requestCopy) {
	if c != nil {
		c.sending.CompareAndSwap(body, nil)
	}
}

// dial is the type of http.Transport.DialContext.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

// watched makes the connections of a transport those of upstreamConn.
func (d dial) watched(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := d(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &upstreamConn{Conn: connection}, nil
}

// connectionOf returns the connection below TLS, or nil.
func connectionOf(connection net.Conn) *upstreamConn {
	for {
		switch c := connection.(type) {
		case *upstreamConn:
			return c
		case interface{ NetConn() net.Conn }:
			connection = c.NetConn()
		default:
			return nil
		}
	}
}

// RoundTrip implements http.RoundTripper.
func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	if x.copied.ReadCloser == nil {
		return x.route.upstream.RoundTrip(req)
	}
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		x.connection.stop(&x.copied) // of an attempt before
		x.copied.lift()
		if x.connection = connectionOf(got.Conn); x.connection != nil {
			x.connection.sending.Store(&x.copied)
		}
	}}
	if x.route.engine != nil {
		trace.WroteRequest = func(wrote httptrace.WroteRequestInfo) {
			if wrote.Err == nil {
				x.decoding.observe(x.decoding.beginRequest)
			}
		}
	}
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
	req.Body = &sentBody{req.Body, &x.copied}
	return x.route.upstream.RoundTrip(req)
}

// sentBody is the body of a request to an upstream. The transport closes it once the body is not needed any
// more: after its end, if no connection can be made, and over HTTP/2 when the upstream resets the stream.
type sentBody struct {
	io.ReadCloser
	copied *requestCopy
}

// Close implements io.Closer.
func (b *sentBody) Close() error {
	b.copied.limit()
	return b.ReadCloser.Close()
}
