// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// guard lets one goroutine at a time decode an exchange, and keeps a panic of the decoding from its forwarding.
type guard struct {
	logger   *zap.Logger
	format   *llmstream.Format // that the log names
	panicked atomic.Bool

	// mutex guards the rest of the decoding, too. Only the timer, and the end of a connection, contend for it.
	mutex   sync.Mutex
	ended   bool // the spans are sent, and the memory is released
	stopped bool // nothing more is decoded
}

// observe calls f with the mutex, unless the decoding has ended. If f panics, forwarding goes on.
func (g *guard) observe(f func()) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if !g.ended {
		g.guarded(f)
	}
}

// guarded calls f, and stops the decoding if it panics.
func (g *guard) guarded(f func()) {
	if !g.try(f) {
		g.stopped = true
	}
}

// try calls f, and reports whether it returned instead of panicking.
func (g *guard) try(f func()) (ok bool) {
	defer func() {
		if recover() != nil { // the value is not logged: it may hold text of the exchange
			g.panicked.Store(true)
			g.logger.Error("failed to decode an exchange, which is forwarded all the same; report this bug with the stack", zap.String("format", string(*g.format)), zap.Stack("stack"))
		}
	}()
	f()
	return true
}
