// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"io"
	"sync"
	"sync/atomic"
)

// maxRequestCopy limits the bytes of a request that are inspected, and maxCopiedBytes those
// of all requests together that wait for an answer.
const (
	maxRequestCopy = 1 << 20
	maxCopiedBytes = 256 << 20
)

// requestCopy keeps the beginning of a request's body as it passes, until it is taken.
type requestCopy struct {
	io.ReadCloser

	total     *atomic.Int64 // copied bytes of all requests
	mutex     sync.Mutex
	bytes     []byte
	truncated bool
	taken     bool
}

// Read implements io.Reader.
func (c *requestCopy) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if n > 0 && !c.taken && !c.truncated {
		kept := min(n, maxRequestCopy-len(c.bytes))
		if c.total.Add(int64(kept)) > maxCopiedBytes {
			c.total.Add(-int64(kept))
			kept = 0
		}
		c.bytes = append(c.bytes, p[:kept]...)
		c.truncated = c.truncated || kept < n
	}
	return n, err
}

// take returns what has passed, and ends the copying.
func (c *requestCopy) take() (bytes []byte, truncated bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.taken || c.total == nil {
		return nil, false
	}
	c.total.Add(-int64(len(c.bytes)))
	bytes, c.bytes, c.taken = c.bytes, nil, true
	return bytes, c.truncated
}
