// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpguard keeps clients of an HTTP server, with or without credentials, from holding what
// all clients share.
package httpguard

import (
	"context"
	"net"
	"net/http"
	"time"
)

// bodyTimeout limits the time in which the body of a request must arrive that no handler reads.
const bodyTimeout = 5 * time.Second

// Bodies limits the wait for bodies that no handler reads. net/http reads the rest of a body before it
// sends an early answer, such as 401, and before it reads the next request. Without a deadline, a client
// that never sends the body holds the connection for ever. Over HTTP/2, it waits for none, and resets the stream.
type Bodies struct{ readTimeout time.Duration }

type connectionKey struct{}

// LimitBodies limits the bodies of a server's requests, outside of its authentication. It replaces the
// server's handler.
func LimitBodies(server *http.Server) Bodies {
	b := Bodies{server.ReadTimeout}
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if Limited(req) {
			b.Limit(w)
		}
		next.ServeHTTP(w, req)
	})
	server.ConnContext = func(ctx context.Context, connection net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, connection)
	}
	return b
}

// Limited reports whether LimitBodies limits the body of a request. Over HTTP/2, each change of a deadline would
// wake the goroutine that serves the connection.
func Limited(req *http.Request) bool { return req.ContentLength != 0 && req.ProtoMajor == 1 }

// unlimited reports whether the server's own read timeout ends later than the limit, or never.
func (b Bodies) unlimited() bool { return b.readTimeout == 0 || b.readTimeout > bodyTimeout }

// Limit gives the rest of the body a few seconds to arrive, while no other goroutine reads it. It returns
// when they end.
func (b Bodies) Limit(w http.ResponseWriter) time.Time {
	deadline := time.Now().Add(bodyTimeout)
	if b.unlimited() {
		_ = http.NewResponseController(w).SetReadDeadline(deadline) // else the connection is closed
	}
	return deadline
}

// Lift ends the limit for a handler that reads the body for as long as the client sends it. The server's
// own read timeout stays.
func (b Bodies) Lift(w http.ResponseWriter) {
	if b.unlimited() {
		var deadline time.Time
		if b.readTimeout > 0 {
			deadline = time.Now().Add(b.readTimeout)
		}
		_ = http.NewResponseController(w).SetReadDeadline(deadline)
	}
}

// Abandon is for a handler that returns before the body has ended, on a connection that ends with the
// answer. Other goroutines may still read the body: net/http then ends these reads, and with them every
// deadline that was set before.
func (b Bodies) Abandon(req *http.Request) {
	if connection, ok := req.Context().Value(connectionKey{}).(net.Conn); ok && req.ProtoMajor == 1 {
		time.AfterFunc(bodyTimeout, func() { _ = connection.SetReadDeadline(time.Unix(1, 0)) })
	}
}
