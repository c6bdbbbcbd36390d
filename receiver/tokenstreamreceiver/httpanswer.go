// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"
)

const tokensPath = "/v1/tokens"

func mediaTypeOf(httpReq *http.Request) string {
	mediaType, _, _ := mime.ParseMediaType(httpReq.Header.Get("Content-Type"))
	return mediaType
}

// breakOff answers before the end of the body.
func (r *tokenStreamReceiver) breakOff(w http.ResponseWriter, applied *answer, refused *refusal) {
	// Without this the server would wait for the rest of the body.
	w.Header().Set("Connection", "close")
	r.finish(w, applied, refused)
}

// finish writes the answer of a request. refused is why its last batch was refused, if
// it was.
func (r *tokenStreamReceiver) finish(w http.ResponseWriter, applied *answer, refused *refusal) {
	status := http.StatusOK
	if refused != nil {
		status = refused.http
		applied.conclude(refused.message)
		if refused.retry {
			w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
		}
	} else if applied.Accepted == 0 && len(applied.Errors) > 0 {
		status = http.StatusBadRequest
	}
	r.write(w, status, applied)
}

func (r *tokenStreamReceiver) writeReadError(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		w.Header().Set("Connection", "close")
		r.writeError(w, http.StatusRequestEntityTooLarge, fmt.Sprintf(
			"the body is larger than %d bytes (max_request_body_size); send smaller requests, or NDJSON without a Content-Length", tooLarge.Limit))
		return
	}
	r.writeError(w, http.StatusBadRequest, "the body cannot be read: "+err.Error()+"; check that the body is complete and matches its Content-Encoding")
}

func (r *tokenStreamReceiver) writeError(w http.ResponseWriter, status int, message string) {
	r.write(w, status, &answer{Errors: []answerError{{Message: message}}})
}

func (r *tokenStreamReceiver) write(w http.ResponseWriter, status int, a *answer) {
	if timeout := r.cfg.Protocols.HTTP.Get().WriteTimeout; timeout > 0 {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout))
	}
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_, _ = w.Write(a.encode()) //nolint:gosec // JSON, not HTML; a client that is gone needs no answer
}
