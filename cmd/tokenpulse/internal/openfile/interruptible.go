// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package openfile

import (
	"context"
	"io"
)

// interruptible reads a source that may block, such as a pipe, until ctx is cancelled. The
// read that blocks then stays behind: it ends with the source or the process.
type interruptible struct {
	ctx     context.Context
	source  io.Reader
	results chan readResult
	buffer  []byte
}

type readResult struct {
	n   int
	err error
}

// Read implements io.Reader.
func (r *interruptible) Read(p []byte) (int, error) {
	if r.buffer == nil {
		r.buffer, r.results = make([]byte, bufferBytes), make(chan readResult, 1)
	}
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	into := r.buffer[:min(len(p), bufferBytes)] // not p, which the caller reuses after a cancellation
	go func() {
		n, err := r.source.Read(into)
		r.results <- readResult{n, err}
	}()
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case result := <-r.results:
		return copy(p, into[:result.n]), result.err
	}
}
