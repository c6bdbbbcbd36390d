// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"net/http"

	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// asked is what the client asks for, as far as it is known.
type asked struct {
	request   *http.Request
	path      string // as the client sent it
	copied    *requestCopy
	facts     llmstream.RequestFacts
	inspected bool // the facts have those of the body
	truncated bool // of which only the beginning is known
}

// readHead reads the path and the query.
func (a *asked) readHead() { a.facts = llmstream.RequestOf(a.path, a.request.URL.RawQuery, nil) }

// readBody inspects what has passed of the body.
func (a *asked) readBody(memory *llmstream.Account) {
	var copied []byte
	copied, a.truncated = a.copied.take()
	body, decoded := decodeRequest(a.request.Header, copied, memory)
	a.truncated = a.truncated || !decoded
	a.facts = llmstream.RequestOf(a.path, a.request.URL.RawQuery, body)
}

// asks reports whether the exchange may be a request to a model, or a read of its response. Others list models, count
// tokens or fetch files.
func (a *asked) asks() bool {
	switch {
	case a.facts.NoRequest:
		return false
	case a.request.Header.Get("Upgrade") != "":
		return true
	case a.facts.Replayed:
		return a.request.Method == http.MethodGet
	default:
		return a.request.Method == http.MethodPost
	}
}
