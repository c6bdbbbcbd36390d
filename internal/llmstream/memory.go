// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"sync"
	"sync/atomic"
)

// Memory limits the bytes that all exchanges hold together. It is safe for concurrent use.
type Memory struct {
	limit int64
	held  atomic.Int64
}

// NewMemory returns a Memory of limit bytes.
func NewMemory(limit int64) *Memory { return &Memory{limit: limit} }

// Held returns the bytes that are held.
func (m *Memory) Held() int64 { return m.held.Load() }

// NewAccount returns the account of an exchange, which holds nothing yet.
func (m *Memory) NewAccount() *Account { return &Account{memory: m} }

// Account is what one exchange holds of a Memory. It is safe for concurrent use. A nil
// Account has no limit.
type Account struct {
	memory *Memory

	mutex   sync.Mutex
	held    int64
	refused bool
	closed  bool
}

// Take reserves n bytes. It returns false, and reserves nothing, if that exceeds the limit or
// if the account is closed.
func (a *Account) Take(n int) bool {
	if a == nil {
		return true
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.closed {
		return false
	}
	if a.memory.held.Add(int64(n)) > a.memory.limit {
		a.memory.held.Add(-int64(n))
		a.refused = true
		return false
	}
	a.held += int64(n)
	return true
}

// Give returns n bytes that Take reserved.
func (a *Account) Give(n int) {
	if a == nil {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if !a.closed {
		a.held -= int64(n)
		a.memory.held.Add(-int64(n))
	}
}

// Refused reports whether Take exceeded the limit since the last call of Refused.
func (a *Account) Refused() bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	refused := a.refused
	a.refused = false
	return refused
}

// Close returns what is held, for good.
func (a *Account) Close() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.closed = true
	a.memory.held.Add(-a.held)
	a.held = 0
}
