// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
)

func (r *tokenStreamReceiver) maxBodySize() int64 {
	if limit := r.cfg.Protocols.HTTP.Get().MaxRequestBodySize; limit > 0 {
		return limit
	}
	return defaultMaxBodySize
}

// handleMessage reads a body that is one message and applies the whole of it.
func (r *tokenStreamReceiver) handleMessage(w http.ResponseWriter, httpReq *http.Request, req *request, read func([]byte) error) {
	// The Content-Length was checked, but it may be that of a compressed body.
	body := http.MaxBytesReader(w, httpReq.Body, r.maxBodySize())
	req.body.Reset()
	if size := httpReq.ContentLength; size > 0 { // the client may send less
		req.body.Grow(int(min(size, keepBody)) + bytes.MinRead)
	}
	if _, err := req.body.ReadFrom(body); err != nil {
		if r.closing.Err() != nil {
			r.breakOff(w, httpReq, req, errShutdown)
			return
		}
		req.unreadable(httpReq.Context())
		r.writeReadError(w, httpReq, err)
		return
	}
	if err := read(req.body.Bytes()); err != nil {
		req.unreadable(httpReq.Context())
		status := http.StatusBadRequest
		if assembly.ReasonOf(err) == assembly.Limit {
			status = http.StatusRequestEntityTooLarge
		}
		r.writeError(w, httpReq, status, err.Error())
		return
	}
	r.finish(w, httpReq, req, req.commit(httpReq.Context()))
}

// handleLines reads NDJSON. A body with a Content-Length is applied as a whole. Any
// other body is live: it may stay open for hours, so the available lines are applied
// before the handler waits for more.
func (r *tokenStreamReceiver) handleLines(w http.ResponseWriter, httpReq *http.Request, req *request) {
	live := httpReq.ContentLength < 0
	refused, err := readLines(httpReq, req, live)
	switch {
	case refused == nil && err == nil:
		r.finish(w, httpReq, req, nil)
		return
	case refused != nil:
	case r.closing.Err() != nil:
		refused = errShutdown
	default:
		req.applied.conclude("the body ended early: " + err.Error())
	}
	r.breakOff(w, httpReq, req, refused)
}

// readLines reads a body to its end. An error is one of reading the body.
func readLines(httpReq *http.Request, req *request, live bool) (*refusal, error) {
	req.lines.reset(httpReq.Body)
	for {
		req.readLines()
		if live {
			if refused := req.commit(httpReq.Context()); refused != nil {
				return refused, nil
			}
		}
		switch err := req.lines.fill(); {
		case errors.Is(err, io.EOF):
			return req.commit(httpReq.Context()), nil
		case err != nil:
			return nil, err
		}
	}
}
