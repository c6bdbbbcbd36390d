// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"io"
	"sync"
)

// maxRequestCopy limits the bytes of a request that are inspected.
const maxRequestCopy = 1 << 20

// requestCopy keeps the beginning of a request's body as it passes, until it is taken.
type requestCopy struct {
	io.ReadCloser

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
	if n > 0 && !c.taken {
		kept := min(n, maxRequestCopy-len(c.bytes))
		c.bytes = append(c.bytes, p[:kept]...)
		c.truncated = c.truncated || kept < n
	}
	return n, err
}

// take returns what has passed, and ends the copying.
func (c *requestCopy) take() (bytes []byte, truncated bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	bytes, c.bytes, c.taken = c.bytes, nil, true
	return bytes, c.truncated
}
