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

// Account returns the account of an exchange, which holds nothing yet.
func (m *Memory) Account() Account { return Account{memory: m} }

// take reserves n bytes if no more than limit are then held.
func (m *Memory) take(n, limit int64) bool {
	for {
		held := m.held.Load()
		if held+n > limit {
			return false
		}
		if m.held.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

// Account is what one exchange holds of a Memory. It is safe for concurrent use. A nil
// Account may take any number of bytes.
type Account struct {
	memory   *Memory
	refusals atomic.Int64

	mutex  sync.Mutex
	held   int64
	closed bool
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
	if !a.memory.take(int64(n), a.memory.limit) {
		a.refusals.Add(1)
		return false
	}
	a.held += int64(n)
	return true
}

// TakeSpare is Take for bytes that others need more: it leaves half of the limit to Take.
// Refusals does not count it.
func (a *Account) TakeSpare(n int) bool {
	if a == nil {
		return true
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.closed || !a.memory.take(int64(n), a.memory.limit/2) {
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

// Refusals returns how often Take would have exceeded the limit.
func (a *Account) Refusals() int64 { return a.refusals.Load() }

// Close returns what is held, for good.
func (a *Account) Close() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.closed = true
	a.memory.held.Add(-a.held)
	a.held = 0
}
