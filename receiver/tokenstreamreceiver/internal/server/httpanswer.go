// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
)

// TokensPath takes token events.
const TokensPath = "/v1/tokens"

// The media types of requests and answers.
const (
	TypeNDJSON   = "application/x-ndjson"
	TypeJSON     = "application/json"
	TypeProtobuf = "application/x-protobuf"
)

func mediaTypeOf(httpReq *http.Request) string {
	mediaType, _, _ := mime.ParseMediaType(httpReq.Header.Get("Content-Type"))
	return mediaType
}

// breakOff answers before the end of the body.
func (s *Server) breakOff(w http.ResponseWriter, applied *ingest.Answer, refused *ingest.Refusal) {
	// Without this the server would wait for the rest of the body.
	w.Header().Set("Connection", "close")
	s.finish(w, applied, refused)
}

// finish writes the answer of a request. refused is why its last batch was refused, if
// it was.
func (s *Server) finish(w http.ResponseWriter, applied *ingest.Answer, refused *ingest.Refusal) {
	status := http.StatusOK
	if refused != nil {
		status = refused.HTTP
		applied.Conclude(refused.Message)
		if refused.Retry {
			w.Header().Set("Retry-After", strconv.Itoa(int(ingest.RetryAfter/time.Second)))
		}
	} else if applied.Accepted == 0 && len(applied.Errors) > 0 {
		status = http.StatusBadRequest
	}
	s.write(w, status, applied)
}

func (s *Server) writeReadError(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		w.Header().Set("Connection", "close")
		s.writeError(w, http.StatusRequestEntityTooLarge, fmt.Sprintf(
			"the body is larger than %d bytes (max_request_body_size); send smaller requests, or NDJSON without a Content-Length", tooLarge.Limit))
		return
	}
	s.writeError(w, http.StatusBadRequest, "the body cannot be read: "+err.Error()+"; check that the body is complete and matches its Content-Encoding")
}

func (s *Server) writeError(w http.ResponseWriter, status int, message string) {
	s.write(w, status, &ingest.Answer{Errors: []ingest.AnswerError{{Message: message}}})
}

func (s *Server) write(w http.ResponseWriter, status int, a *ingest.Answer) {
	if timeout := s.settings.HTTP.WriteTimeout; timeout > 0 {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout))
	}
	w.Header().Set("Content-Type", TypeJSON)
	w.WriteHeader(status)
	_, _ = w.Write(a.Encode()) //nolint:gosec // JSON, not HTML; a client that is gone needs no answer
}
