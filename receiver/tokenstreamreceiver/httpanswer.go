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

// The paths of the HTTP server.
const (
	tokensPath = "/v1/tokens"
	logsPath   = "/v1/logs"
)

func acceptsLogs(httpReq *http.Request) bool { return httpReq.URL.Path == logsPath }

func mediaTypeOf(httpReq *http.Request) string {
	mediaType, _, _ := mime.ParseMediaType(httpReq.Header.Get("Content-Type"))
	return mediaType
}

// breakOff answers before the end of the body.
func (r *tokenStreamReceiver) breakOff(w http.ResponseWriter, httpReq *http.Request, applied *answer, refused *refusal) {
	// Without this the server would wait for the rest of the body.
	w.Header().Set("Connection", "close")
	r.finish(w, httpReq, applied, refused)
}

// finish writes the answer of a request. refused is why its last batch was refused, if
// it was.
func (r *tokenStreamReceiver) finish(w http.ResponseWriter, httpReq *http.Request, applied *answer, refused *refusal) {
	status := http.StatusOK
	if refused != nil {
		status = refused.http
		applied.conclude(refused.message)
		if refused.retry {
			w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
		}
	} else if applied.Accepted == 0 && len(applied.Errors) > 0 && !acceptsLogs(httpReq) { // a partial success in OTLP
		status = http.StatusBadRequest
	}
	r.write(w, httpReq, status, applied)
}

func (r *tokenStreamReceiver) writeReadError(w http.ResponseWriter, httpReq *http.Request, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		advice := "send smaller requests"
		if !acceptsLogs(httpReq) {
			advice += ", or NDJSON without a Content-Length"
		}
		w.Header().Set("Connection", "close")
		r.writeError(w, httpReq, http.StatusRequestEntityTooLarge, fmt.Sprintf(
			"the body is larger than %d bytes (max_request_body_size); %s", tooLarge.Limit, advice))
		return
	}
	r.writeError(w, httpReq, http.StatusBadRequest, "the body cannot be read: "+err.Error()+"; check that the body is complete and matches its Content-Encoding")
}

func (r *tokenStreamReceiver) writeError(w http.ResponseWriter, httpReq *http.Request, status int, message string) {
	r.write(w, httpReq, status, &answer{Errors: []answerError{{Message: message}}})
}

// write encodes an answer for the path of its request.
func (r *tokenStreamReceiver) write(w http.ResponseWriter, httpReq *http.Request, status int, a *answer) {
	if timeout := r.cfg.Protocols.HTTP.Get().WriteTimeout; timeout > 0 {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout))
	}
	encode := a.encodeTokens
	if acceptsLogs(httpReq) {
		encode = func() ([]byte, string) { return a.encodeLogs(status, mediaTypeOf(httpReq)) }
	}
	body, contentType := encode()
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON or protobuf, not HTML; a client that is gone needs no answer
}
