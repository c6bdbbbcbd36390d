// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"sync/atomic"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

// Handle refers to the series of one key, to find it once and record many requests. It
// outlives the series: after the series expired, the next request opens a new one. It is
// safe for concurrent use.
type Handle struct {
	// Key identifies the series, as Contribution.AppendKey writes it.
	Key string
	// series is nil while the series is not open, or in another handle. It is never the
	// overflow series, because there may be room for an own series later.
	series atomic.Pointer[series]

	// standard refers to the series of a Standard. It is nil without conventions.
	standard *Handle
}

// NewHandle returns a handle of the series that the request belongs to. It opens no series.
func NewHandle(r *Contribution) *Handle {
	h := &Handle{Key: string(r.AppendKey(nil))}
	if len(r.Standard) > 0 {
		h.standard = &Handle{Key: string(r.appendStandardKey(nil))}
	}
	return h
}

// RecordTo adds a request to its series, like Record. With a handle of them, it need not look them up.
func (e *Engine) RecordTo(h *Handle, r *Contribution) Recorded {
	e.Standard.record(h, r)
	var key []byte
	if h == nil {
		var buffer [512]byte
		key = r.AppendKey(buffer[:0])
	}
	apart := e.verdicts && e.ofOutcome.Any(r.Dimensions)
	recorded := e.add(h, key, r.Client, r.Arrival, func(s *series) Recorded { return s.record(r, !apart) })
	if apart && r.Verdicts.Any() {
		var buffer [512]byte
		key := e.ofOutcome.AppendKey(buffer[:0], r.Dimensions, r.Vantage)
		judged := e.add(nil, key, r.Client, r.Arrival, func(s *series) Recorded { return s.judge(r) })
		recorded.Overflow = recorded.Overflow || judged.Overflow
		recorded.DroppedVerdicts = judged.DroppedVerdicts
	}
	return recorded
}

// handled returns the series of a handle, and opens it if necessary.
func (t *table) handled(h *Handle, client *httpguard.Client, now time.Time) *series {
	if s := h.series.Load(); s != nil {
		return s
	}
	return t.hold(h, client, now)
}

// hold opens the series of a handle, and puts it there. A series is in one handle
// at a time, so that its end releases its memory.
func (t *table) hold(h *Handle, client *httpguard.Client, now time.Time) *series {
	s := t.open([]byte(h.Key), client, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.key == overflowKey || t.series[s.key] != s {
		return s
	}
	s.release()
	s.holder = h
	h.series.Store(s)
	return s
}

// release takes the series from its handle. The table's mu is held.
func (s *series) release() {
	if s.holder != nil {
		s.holder.series.CompareAndSwap(s, nil)
		s.holder = nil
	}
}
