// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"slices"
	"sync"
)

// clientMessages reads what the client of a connection sends. Its framer is used without a
// lock: the server's side reads only the requests and the model.
type clientMessages struct {
	framer     webSocketFramer
	time       int64
	unobserved int // requests beyond maxRequests in this write

	mu       sync.Mutex // guards the following; held only to read or change them
	model    string
	requests []responseRequest
}

// responseRequest is a client's request for a response.
type responseRequest struct {
	time int64
	id   string // of the client's event, or empty
}

// clientMessage is what a message of the client says.
type clientMessage struct {
	id, model value // nil if it has none
	asks      bool  // for a response
	endsTurn  bool  // asks for one response to all that the client sent
}

// What cannot be read of the client's side is no part of an answer, and does not count.
func (*clientMessages) tooLong() {}
func (*clientMessages) invalid() {}
func (*clientMessages) corrupt() {}
func (*clientMessages) tail()    {}

func (m *clientMessages) event(e event) {
	v, ok := parse(e.data)
	if !ok {
		return
	}
	var said clientMessage
	for name, member := range v.members {
		for _, f := range formats {
			if f.connection != nil {
				f.connection.clientMember(name, member, &said)
			}
		}
	}
	if !said.asks && !said.endsTurn && said.model == nil {
		return
	}
	asked := responseRequest{m.time, said.id.name()}
	model := said.model.name()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case said.endsTurn:
		m.requests = append(m.requests[:0], asked)
	case said.asks && len(m.requests) < maxRequests:
		m.requests = append(m.requests, asked)
	case said.asks:
		m.unobserved++
	}
	if said.model != nil {
		m.model = model
	}
}

// waiting reports whether a request has no response yet.
func (m *clientMessages) waiting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests) > 0
}

// take removes the oldest request, which must not have another ID than the given one.
func (m *clientMessages) take(id value) (asked responseRequest, ok bool) {
	name := id.name()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) == 0 || name != "" && m.requests[0].id != "" && name != m.requests[0].id {
		return responseRequest{}, false
	}
	asked = m.requests[0]
	m.requests = slices.Delete(m.requests, 0, 1)
	return asked, true
}

// sessionModel returns the model that the client asked for, or an empty name.
func (m *clientMessages) sessionModel() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.model
}
