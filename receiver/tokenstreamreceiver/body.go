package tokenstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// timedBody is the body of a request as it comes over the wire. Reading it waits
// for the next byte as long as idle, and no longer once the receiver closes.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	idle    time.Duration
	closing context.Context

	mu   sync.Mutex
	over bool // the deadline is not this body's any more
}

// timeBodies applies idle_timeout to the bodies that next reads.
func (r *tokenStreamReceiver) timeBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Body == http.NoBody {
			next.ServeHTTP(w, req)
			return
		}
		body := &timedBody{ReadCloser: req.Body, control: http.NewResponseController(w), idle: r.cfg.IdleTimeout, closing: r.closing}
		// Also for what next leaves unread: the server reads that itself.
		body.wait(body.idle)
		stop := context.AfterFunc(r.closing, func() { body.wait(0) })
		defer func() {
			stop()
			body.end()
		}()
		// A copy, because the server looks at the body of the request that it made.
		req = req.WithContext(req.Context())
		req.Body = body
		next.ServeHTTP(w, req)
	})
}

// Read reads what comes next.
func (b *timedBody) Read(p []byte) (int, error) {
	b.wait(b.idle)
	if b.closing.Err() != nil { // too late to be woken up
		return 0, errShutdown
	}
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		// From here on the server reads, without a deadline, to see the client
		// leave. One that passes would look like that.
		b.end()
	case errors.Is(err, os.ErrDeadlineExceeded) && b.closing.Err() != nil:
		err = errShutdown
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("silent for %s (idle_timeout)", b.idle)
	}
	return n, err
}

func (b *timedBody) wait(patience time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		_ = b.control.SetReadDeadline(time.Now().Add(patience))
	}
}

func (b *timedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}
