// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import "sync/atomic"

// Handle refers to the series of one key, to find it once and record many requests. It
// outlives the series: after the series expired, the next request opens a new one. It is
// safe for concurrent use.
type Handle struct {
	// Key identifies the series, as Request.AppendKey writes it.
	Key string
	// series is nil while the series is not open, or in another handle. It is never the
	// overflow series, because there may be room for an own series later.
	series atomic.Pointer[series]

	// standard is nil without conventions.
	standard *standardHandle
}

// NewHandle returns a handle of the series that the request belongs to. It opens no series.
func NewHandle(r *Contribution) *Handle {
	var buffer [512]byte
	h := &Handle{Key: string(r.AppendKey(buffer[:0]))}
	if len(r.Standard) > 0 {
		h.standard = newStandardHandle(r)
	}
	return h
}

// RecordTo adds a request to the series of a handle, like Record, without reading the
// dimensions and the vantage of the request.
func (e *Engine) RecordTo(h *Handle, r *Contribution) Recorded {
	e.Standard.recordTo(h.standard, r)
	return e.add(r.Arrival, func() *series { return e.handled(h, r) }, func(s *series) Recorded { return s.record(r) })
}

// handled returns the series of a handle, and opens it if necessary.
func (e *Engine) handled(h *Handle, r *Contribution) *series {
	if s := h.series.Load(); s != nil {
		return s
	}
	return e.hold(h, r)
}

// hold returns the series of a handle, and opens it if necessary. A series is in one handle
// at a time, so that its end releases its memory.
func (e *Engine) hold(h *Handle, r *Contribution) *series {
	s := e.open([]byte(h.Key), r.Client, r.Arrival)
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.key == overflowKey || e.series[s.key] != s {
		return s
	}
	s.release()
	s.holder = h
	h.series.Store(s)
	return s
}

// release takes the series from its handle. The engine's mu is held.
func (s *series) release() {
	if s.holder != nil {
		s.holder.series.CompareAndSwap(s, nil)
		s.holder = nil
	}
}
