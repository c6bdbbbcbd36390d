// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
)

// timedBody is the body of a request before decompression. A read waits for the next
// byte for up to idle, and ends at once when the receiver shuts down. A body with a
// Content-Length must also keep a minimum rate, so that no client holds one open byte by byte.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	idle    time.Duration
	closing context.Context

	received int64         // bytes that were read; only the reader uses it
	began    time.Time     // zero for a body without a Content-Length, which may stay open
	slow     time.Duration // slowBodyTime but in tests

	mu   sync.Mutex
	done bool // the server uses the deadline again
}

// The minimum rate of a body with a Content-Length, in bytes per second, and the time from which it
// counts.
const minBodyRate = 1 << 10

const slowBodyTime = 30 * time.Second

// due returns how long the next read may wait, and whether the minimum rate limits it.
func (b *timedBody) due() (timeout time.Duration, slow bool) {
	if b.began.IsZero() {
		return b.idle, false
	}
	earned := time.Duration(b.received) * time.Second / minBodyRate
	left := time.Until(b.began.Add(b.slow + earned))
	return min(b.idle, left), left < b.idle
}

// bodyKey is the key of the timedBody in the context of its request.
type bodyKey struct{}

// timeBodies applies idle_timeout to the request bodies that a handler reads. The server's httpguard.Bodies
// limit the others.
func (s *Server) timeBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Body == http.NoBody {
			next.ServeHTTP(w, req)
			return
		}
		body := &timedBody{ReadCloser: req.Body, control: http.NewResponseController(w), idle: s.settings.IdleTimeout, closing: s.settings.Closing, slow: s.SlowBodyTime}
		if req.ContentLength > 0 {
			body.began = time.Now()
		}
		stop := context.AfterFunc(s.settings.Closing, func() { body.wait(0) })
		defer func() {
			stop()
			if body.end() {
				s.unread.Limit(w)
			}
		}()
		// A copy, because the server uses the body of its own request.
		req = req.WithContext(context.WithValue(req.Context(), bodyKey{}, body))
		req.Body = body
		next.ServeHTTP(w, req)
	})
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	timeout, slow := b.due()
	b.wait(timeout)
	if b.closing.Err() != nil { // the shutdown came before the deadline was set
		return 0, ingest.ErrShutdown
	}
	n, err := b.ReadCloser.Read(p)
	b.received += int64(n)
	switch {
	case errors.Is(err, io.EOF):
		// From here on the server reads in the background, to notice when the client
		// disconnects. An expired deadline would look like a disconnect.
		b.end()
	case errors.Is(err, os.ErrDeadlineExceeded) && b.closing.Err() != nil:
		err = ingest.ErrShutdown
	case errors.Is(err, os.ErrDeadlineExceeded) && slow:
		err = fmt.Errorf("the body arrives at less than %d bytes a second", minBodyRate)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("no data for %s (idle_timeout)", b.idle)
	}
	return n, err
}

func (b *timedBody) wait(timeout time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.done {
		_ = b.control.SetReadDeadline(time.Now().Add(timeout))
	}
}

// end leaves the deadline to the server. It reports whether it did so for the first time.
func (b *timedBody) end() (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, b.done = !b.done, true
	return first
}
