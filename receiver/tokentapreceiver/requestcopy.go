// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// maxRequestCopy limits the bytes of a request that are inspected.
const maxRequestCopy = 1 << 20

// requestCopy watches a request's body as it passes, and keeps its beginning until it is
// taken.
type requestCopy struct {
	io.ReadCloser

	memory    *llmstream.Account // nil to copy nothing
	mutex     sync.Mutex
	bytes     []byte
	truncated bool
	taken     bool
	passed    int64 // bytes of the body
	ended     bool  // the body passed whole
	broken    error // why the body cannot be read on

	bodies  httpguard.Bodies
	server  http.ResponseWriter // nil once the handler returns
	limited time.Time           // until when the rest must arrive, zero while the upstream waits for it
	overdue bool                // a read ended because the rest did not arrive in time
}

// Read implements io.Reader.
func (c *requestCopy) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.passed += int64(n)
	switch err {
	case nil:
	case io.EOF:
		c.ended = true
		c.liftLocked() // else the limit would end the wait for the answer
	default:
		if c.overdue = !c.limited.IsZero() && errors.Is(err, os.ErrDeadlineExceeded); !c.overdue {
			c.broken = err
		}
	}
	if n > 0 && c.memory != nil && !c.taken && !c.truncated {
		kept := min(n, maxRequestCopy-len(c.bytes))
		if !c.memory.TakeSpare(kept) {
			kept = 0
		}
		c.bytes = append(c.bytes, p[:kept]...)
		c.truncated = c.truncated || kept < n
	}
	return n, err
}

// limit gives the rest of the body a few seconds to arrive.
func (c *requestCopy) limit() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.server != nil && !c.ended && c.limited.IsZero() {
		c.limited = c.bodies.Limit(c.server)
	}
}

// lift ends the limit.
func (c *requestCopy) lift() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.liftLocked()
}

func (c *requestCopy) liftLocked() {
	if c.server != nil && !c.limited.IsZero() {
		c.limited = time.Time{}
		c.bodies.Lift(c.server)
	}
}

// isOverdue reports whether the rest did not arrive before the limit. net/http cancels the request before
// the read of its body returns, so the time decides too.
func (c *requestCopy) isOverdue() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.overdue || !c.limited.IsZero() && !time.Now().Before(c.limited)
}

// release ends the use of the server's writer.
func (c *requestCopy) release() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.server = nil
}

// maxDiscarded is up to how many bytes of a body net/http reads after an answer, to use the
// connection again.
const maxDiscarded = 256 << 10

// isDiscarded reports whether net/http would read the body of a request that did not pass.
func isDiscarded(req *http.Request) bool {
	return req.ProtoMajor == 1 && !req.Close && req.ContentLength > 0 && req.ContentLength <= maxDiscarded && req.Header.Get("Expect") == ""
}

// state reports whether the body passed whole, and why it cannot be read on.
func (c *requestCopy) state() (ended bool, broken error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.ended || c.ReadCloser == nil, c.broken
}

// size returns how many bytes of the body have passed.
func (c *requestCopy) size() int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.passed
}

// take returns what has passed, and ends the copying.
func (c *requestCopy) take() (body []byte, truncated bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.taken || c.memory == nil {
		return nil, false
	}
	c.memory.Give(len(c.bytes))
	body, c.bytes, c.taken = c.bytes, nil, true
	return body, c.truncated
}

// decodeRequest returns the decoded body of a request of which copied has passed. ok is false
// if more than maxRequestCopy bytes follow from it, or if the content encoding is unknown or
// damaged: the body then holds what was decoded before.
func decodeRequest(header http.Header, copied []byte, memory *llmstream.Account) (body []byte, ok bool) {
	encodings, ok := encodingsOf(header)
	switch {
	case len(copied) == 0 || ok && len(encodings) == 0:
		return copied, true
	case !ok:
		return nil, false
	}
	decoded, release, err := encodings.open(bytes.NewReader(copied), memory, func(written int64) bool { return written > maxRequestCopy })
	if err == nil {
		defer release()
		body, err = io.ReadAll(decoded)
	}
	// The rest may not have passed yet, or is beyond the copy.
	return body, err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
