// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"errors"
	"io"
	"net/http"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

func (r *tokenStreamReceiver) maxBodySize() int64 {
	if limit := r.cfg.Protocols.HTTP.Get().MaxRequestBodySize; limit > 0 {
		return limit
	}
	return defaultMaxBodySize
}

// messageBody is a body that is one message. Its buffer grows with the data that
// arrives.
type messageBody struct {
	buffer []byte
	memory reservation // of buffer
}

const (
	// firstRead is the size of the buffer before any data has arrived.
	firstRead = 4 << 10
	// maxDeclared limits the growth of the buffer to a declared size.
	maxDeclared = 64 << 10
	// keepBody is the maximum size of a buffer that the next request reuses.
	keepBody = 1 << 20
)

// readFrom reads a body whose declared size is positive if known. It returns an
// assembly.FullError without memory for the buffer.
func (m *messageBody) readFrom(body io.Reader, declared int64) error {
	m.buffer = m.buffer[:0]
	if err := m.memory.add(int64(cap(m.buffer))); err != nil {
		return err
	}
	for {
		if len(m.buffer) == cap(m.buffer) {
			if err := m.grow(declared); err != nil {
				return err
			}
		}
		n, err := body.Read(m.buffer[len(m.buffer):cap(m.buffer)])
		m.buffer = m.buffer[:len(m.buffer)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (m *messageBody) grow(declared int64) error {
	size := max(firstRead, 2*cap(m.buffer))
	if cap(m.buffer) > 0 { // some data has arrived
		size = max(size, int(min(declared+1, maxDeclared)))
	}
	// Until the data is moved there are both buffers.
	if err := m.memory.add(int64(size)); err != nil {
		return err
	}
	old := int64(cap(m.buffer))
	m.buffer = append(make([]byte, 0, size), m.buffer...)
	return m.memory.add(-old)
}

// close ends the use of a body.
func (m *messageBody) close() {
	m.memory.free()
	if cap(m.buffer) > keepBody {
		m.buffer = nil
	}
}

// handleMessage reads a body that is one message and applies the whole of it.
func (r *tokenStreamReceiver) handleMessage(w http.ResponseWriter, httpReq *http.Request, read func(*request, []byte) error) {
	body := r.bodies.Get().(*messageBody)
	defer func() {
		body.close()
		r.bodies.Put(body)
	}()
	// The Content-Length was checked, but it may be that of a compressed body.
	if err := body.readFrom(http.MaxBytesReader(w, httpReq.Body, r.maxBodySize()), httpReq.ContentLength); err != nil {
		if refused := r.readRefusal(httpReq, err); refused != nil {
			r.breakOff(w, new(answer), refused)
			return
		}
		r.ingester.unreadable(httpReq.Context(), assembly.Malformed)
		r.writeReadError(w, err)
		return
	}
	var applied answer
	req := r.take(r.reportHTTP, false, &applied)
	defer r.put(req)
	r.finish(w, &applied, req.commitRead(httpReq.Context(), r.decode(req, body.buffer, read)))
}

// readRefusal returns the refusal that is the cause of an error of reading a body, or nil
// if the body itself is.
func (r *tokenStreamReceiver) readRefusal(httpReq *http.Request, err error) *refusal {
	if refused := r.ingester.memoryRefusal(httpReq.Context(), err); refused != nil {
		return refused
	}
	if r.closing.Err() != nil {
		return errShutdown
	}
	var refused *refusal
	if errors.As(err, &refused) { // errInflated
		r.ingester.unreadable(httpReq.Context(), assembly.Limit)
		return refused
	}
	return nil
}

// handleLines reads NDJSON. A body with a Content-Length is applied as a whole. Any
// other body is live: it may stay open for hours, so the available lines are applied
// before the handler waits for more.
func (r *tokenStreamReceiver) handleLines(w http.ResponseWriter, httpReq *http.Request) {
	var applied answer
	live := httpReq.ContentLength < 0
	if live {
		end, refused := r.beginLive(httpReq.Context())
		if refused != nil {
			r.breakOff(w, &applied, refused)
			return
		}
		defer end()
	}
	refused, err := r.readLines(httpReq, live, &applied)
	if err != nil {
		refused = r.readRefusal(httpReq, err)
	}
	switch {
	case refused == nil && err == nil:
		r.finish(w, &applied, nil)
		return
	case refused == nil:
		applied.conclude("the body ended early: " + err.Error() + "; send again the events that were not accepted")
	}
	r.breakOff(w, &applied, refused)
}

// readLines reads a body to its end. An error is one of reading the body.
func (r *tokenStreamReceiver) readLines(httpReq *http.Request, live bool, applied *answer) (*refusal, error) {
	lines := r.lines.Get().(*lineReader)
	defer func() {
		lines.close()
		r.lines.Put(lines)
	}()
	if err := lines.reset(limitInflation(httpReq)); err != nil {
		return nil, err
	}
	var req *request
	defer func() {
		if req != nil {
			r.put(req)
		}
	}()
	ctx := httpReq.Context()
	for {
		err := lines.fill()
		if err != nil && (req == nil || !errors.Is(err, io.EOF)) {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return nil, err
		}
		if err != nil {
			return req.commit(ctx), nil
		}
		if req == nil {
			req = r.take(r.reportHTTP, true, applied)
		}
		if err := req.memory.add(memoryPerLineByte * int64(lines.arrived)); err != nil {
			return nil, err
		}
		stopped := req.readLines(lines)
		if !live && stopped == nil && !req.isEmpty() {
			continue
		}
		if refused := req.commit(ctx); refused != nil {
			return refused, nil
		}
		if stopped != nil {
			r.ingester.unreadable(ctx, assembly.Limit)
			return stopped, nil
		}
		r.put(req)
		req = nil
	}
}
