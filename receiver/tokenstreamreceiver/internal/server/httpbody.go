// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io"
	"net/http"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
)

// DefaultMaxBodySize equals the default of confighttp.
const DefaultMaxBodySize = 20 << 20

func (s *Server) maxBodySize() int64 {
	if limit := s.settings.HTTP.MaxRequestBodySize; limit > 0 {
		return limit
	}
	return DefaultMaxBodySize
}

// messageBody is a body that is one message. Its buffer grows with the data that
// arrives.
type messageBody struct {
	buffer []byte
	memory ingest.Reservation // of buffer
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
	if err := m.memory.Add(int64(cap(m.buffer))); err != nil {
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
	if err := m.memory.Add(int64(size)); err != nil {
		return err
	}
	old := int64(cap(m.buffer))
	m.buffer = append(make([]byte, 0, size), m.buffer...)
	return m.memory.Add(-old)
}

// close ends the use of a body.
func (m *messageBody) close() {
	m.memory.Free()
	if cap(m.buffer) > keepBody {
		m.buffer = nil
	}
}

// takeBody returns memory for a body. The caller must give it back with putBody.
func (s *Server) takeBody() *messageBody { return s.bodies.Get().(*messageBody) }

func (s *Server) putBody(body *messageBody) {
	body.close()
	s.bodies.Put(body)
}

// handleMessage reads a body that is one message and applies the whole of it.
func (s *Server) handleMessage(w http.ResponseWriter, httpReq *http.Request, read func(*ingest.Request, []byte) error) {
	body := s.takeBody()
	defer s.putBody(body)
	// The Content-Length was checked, but it may be that of a compressed body.
	if err := body.readFrom(http.MaxBytesReader(w, httpReq.Body, s.maxBodySize()), httpReq.ContentLength); err != nil {
		if refused := s.readRefusal(httpReq, err); refused != nil {
			s.breakOff(w, new(ingest.Answer), refused)
			return
		}
		s.ingester.Unreadable(httpReq.Context(), assembly.Malformed)
		s.writeReadError(w, err)
		return
	}
	var applied ingest.Answer
	req := s.ingester.Take(s.reportHTTP, false, &applied)
	defer s.ingester.Put(req)
	s.finish(w, &applied, req.CommitRead(httpReq.Context(), req.Read(body.buffer, read)))
}

// readRefusal returns the refusal that is the cause of an error of reading a body, or nil
// if the body itself is.
func (s *Server) readRefusal(httpReq *http.Request, err error) *ingest.Refusal {
	if refused := s.ingester.MemoryRefusal(httpReq.Context(), err); refused != nil {
		return refused
	}
	if s.settings.Closing.Err() != nil {
		return ingest.ErrShutdown
	}
	var refused *ingest.Refusal
	if errors.As(err, &refused) { // errInflated
		s.ingester.Unreadable(httpReq.Context(), assembly.Limit)
		return refused
	}
	return nil
}

// handleLines reads NDJSON. A body with a Content-Length is applied as a whole. Any
// other body is live: it may stay open for hours, so the available lines are applied
// before the handler waits for more.
func (s *Server) handleLines(w http.ResponseWriter, httpReq *http.Request) {
	var applied ingest.Answer
	live := httpReq.ContentLength < 0
	if live {
		end, refused := s.beginLive(httpReq.Context())
		if refused != nil {
			s.breakOff(w, &applied, refused)
			return
		}
		defer end()
	}
	refused, err := s.readLines(httpReq, live, &applied)
	if err != nil {
		refused = s.readRefusal(httpReq, err)
	}
	switch {
	case refused == nil && err == nil:
		s.finish(w, &applied, nil)
		return
	case refused == nil:
		applied.Conclude("the body ended early: " + err.Error() + "; send again the events that were not accepted")
	}
	s.breakOff(w, &applied, refused)
}

// readLines reads a body to its end. An error is one of reading the body.
func (s *Server) readLines(httpReq *http.Request, live bool, applied *ingest.Answer) (*ingest.Refusal, error) {
	lines := s.lines.Get().(*ingest.LineReader)
	defer func() {
		lines.Close()
		s.lines.Put(lines)
	}()
	if err := lines.Reset(limitInflation(httpReq)); err != nil {
		return nil, err
	}
	var req *ingest.Request
	defer func() {
		if req != nil {
			s.ingester.Put(req)
		}
	}()
	ctx := httpReq.Context()
	for {
		err := lines.Fill()
		if err != nil && (req == nil || !errors.Is(err, io.EOF)) {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return nil, err
		}
		if err != nil {
			return req.Commit(ctx), nil
		}
		if req == nil {
			req = s.ingester.Take(s.reportHTTP, true, applied)
		}
		if err := req.ReserveLines(lines); err != nil {
			return nil, err
		}
		stopped := req.ReadLines(lines)
		if !live && stopped == nil && !req.IsEmpty() {
			continue
		}
		if refused := req.Commit(ctx); refused != nil {
			return refused, nil
		}
		if stopped != nil {
			s.ingester.Unreadable(ctx, assembly.Limit)
			return stopped, nil
		}
		s.ingester.Put(req)
		req = nil
	}
}
