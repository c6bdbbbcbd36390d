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
	requests []request
}

// request is a client's request for a response.
type request struct {
	time int64
	id   string // of the client's event, or empty
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
	var kind, id, model value
	var endsTurn bool // of Gemini Live: one response answers all that the client sent
	for name, part := range v.members {
		switch string(name) {
		case "type":
			kind = part
		case "event_id":
			id = part
		case "setup":
			model = part.get("model")
		case "clientContent":
			endsTurn = endsTurn || part.get("turnComplete").isTrue()
		case "toolResponse":
			endsTurn = true
		case "realtimeInput":
			endsTurn = endsTurn || part.get("text") != nil || part.get("activityEnd") != nil
		}
	}
	asks := kind.is("response.create")
	if !asks && !endsTurn && model == nil {
		return
	}
	asked := request{m.time, id.name()}
	named := model.name()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case endsTurn:
		m.requests = append(m.requests[:0], asked)
	case asks && len(m.requests) < maxRequests:
		m.requests = append(m.requests, asked)
	case asks:
		m.unobserved++
	}
	if model != nil {
		m.model = named
	}
}

// waiting reports whether a request has no response yet.
func (m *clientMessages) waiting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests) > 0
}

// take removes the oldest request, which must not have another ID than the given one.
func (m *clientMessages) take(id value) (asked request, ok bool) {
	name := id.name()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) == 0 || name != "" && m.requests[0].id != "" && name != m.requests[0].id {
		return request{}, false
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
