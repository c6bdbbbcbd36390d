// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package html

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
)

// asker asks an API, and keeps answers up to a limit. The first error ends it.
type asker struct {
	api     http.Handler
	answers map[string]json.RawMessage
	size    int
	// pending are answers that are kept together, or not at all.
	pending map[string]json.RawMessage
	err     error
}

// ask returns the answer to a question, which is pending then.
func (a *asker) ask(path string, query url.Values, into any) {
	body := a.look(path, query, into)
	a.pending[path+"?"+query.Encode()] = body
}

// look returns the answer to a question.
func (a *asker) look(path string, query url.Values, into any) json.RawMessage {
	if a.err != nil {
		return nil
	}
	request, err := http.NewRequest(http.MethodGet, "/api/v1/"+path+"?"+query.Encode(), http.NoBody) //nolint:noctx // it stays in this process
	if err != nil {
		a.err = err
		return nil
	}
	w := response{header: http.Header{}}
	a.api.ServeHTTP(&w, request)
	if w.status != 0 {
		a.err = fmt.Errorf("%s: %s", request.URL, w.body.Bytes())
		return nil
	}
	if into != nil {
		a.err = json.Unmarshal(w.body.Bytes(), into)
	}
	return w.body.Bytes()
}

// keep keeps the pending answers, and reports whether they stay within a limit of all answers.
func (a *asker) keep(limit int) bool {
	size := a.size
	for question, answer := range a.pending {
		if _, again := a.answers[question]; !again {
			size += len(question) + len(answer)
		}
	}
	fits := a.err == nil && size <= limit
	if fits {
		maps.Copy(a.answers, a.pending)
		a.size = size
	}
	clear(a.pending)
	return fits
}

// response is a response in memory.
type response struct {
	header http.Header
	status int // 0 if it is 200
	body   bytes.Buffer
}

func (r *response) Header() http.Header               { return r.header }
func (r *response) WriteHeader(status int)            { r.status = status }
func (r *response) Write(content []byte) (int, error) { return r.body.Write(content) }
