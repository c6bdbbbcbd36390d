// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// listener is the network between clients and one process: connections in memory, whose
// deadlines follow the virtual clock.
type listener struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once

	mu    sync.Mutex
	conns []net.Conn // of the server
}

func newListener() *listener {
	return &listener{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 4319} }

// sever closes all connections, as the end of the process does.
func (l *listener) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.conns = nil
}

// conn is a connection with the address of its client, by which the receiver counts its streams.
type conn struct {
	net.Conn
	client net.Addr
}

func (c conn) RemoteAddr() net.Addr { return c.client }

// buffered is a client's connection with a send buffer, as TCP has one. Without it, an answer
// before the end of a body would race with the error of writing the rest.
type buffered struct {
	net.Conn
	queue  chan []byte
	closed chan struct{}
	once   sync.Once
}

func newBuffered(to net.Conn) *buffered {
	b := &buffered{Conn: to, queue: make(chan []byte, 1024), closed: make(chan struct{})}
	go func() {
		for {
			select {
			case p := <-b.queue:
				_, _ = to.Write(p) // the receiver may have closed: the client reads its answer
			case <-b.closed:
				return
			}
		}
	}()
	return b
}

func (b *buffered) Write(p []byte) (int, error) {
	select {
	case b.queue <- slices.Clone(p):
		return len(p), nil
	case <-b.closed:
		return 0, net.ErrClosed
	}
}

func (b *buffered) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Conn.Close()
}

// dial connects a client.
func (l *listener) dial(ctx context.Context, client int) (net.Conn, error) {
	ours, theirs := net.Pipe()
	server := conn{theirs, &net.TCPAddr{IP: net.IPv4(10, 0, 1, byte(client)), Port: 1024}}
	l.mu.Lock()
	l.conns = append(l.conns, server)
	l.mu.Unlock()
	select {
	case l.accepted <- server:
		return newBuffered(ours), nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// reply is the receiver's answer to a message. status is 0 without one.
type reply struct {
	status             int
	Accepted, Rejected int
	Errors             []struct{ Message string }
}

func (r *reply) String() string {
	if r.status == 0 {
		return "no answer"
	}
	all := []string{fmt.Sprintf("%d, accepted %d, rejected %d", r.status, r.Accepted, r.Rejected)}
	for _, e := range r.Errors {
		all = append(all, e.Message)
	}
	return strings.Join(all, ": ")
}

// post sends a body over a connection of its own. A body of unknown length is live.
func (l *listener) post(ctx context.Context, client int, contentType string, body io.Reader) reply {
	transport := &http.Transport{
		DisableKeepAlives:  true,
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return l.dial(ctx, client)
		},
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://collector/v1/tokens", body)
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return reply{}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}
	}
	answer := reply{status: response.StatusCode}
	if err := json.NewDecoder(bytes.NewReader(content)).Decode(&answer); err != nil {
		panic(fmt.Sprintf("%s: %q", err, content))
	}
	return answer
}
