// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"sync/atomic"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// Stats counts what is sent. It may be read concurrently.
type Stats struct {
	// Requests counts streams that were sent with their end, Tokens the tokens of all
	// streams.
	Requests, Tokens atomic.Int64
	// Rejected counts the events or streams that the receiver rejected.
	Rejected atomic.Int64
	// Refused counts the events that the receiver still refused at the last attempt.
	Refused atomic.Int64
	// Retries counts requests that were sent again.
	Retries atomic.Int64

	rejection, refusal atomic.Pointer[string]
	acknowledged       atomic.Bool // a request was
}

// LastRefusal returns the error of the last attempt to send refused events.
func (s *Stats) LastRefusal() string { return last(&s.refusal) }

// LastRejection returns the receiver's message for its last rejection.
func (s *Stats) LastRejection() string { return last(&s.rejection) }

// last returns a message, or "" if there was none.
func last(message *atomic.Pointer[string]) string {
	if text := message.Load(); text != nil {
		return *text
	}
	return ""
}

func (s *Stats) addRefused(parts []stream.Part, err error) {
	for _, p := range parts {
		s.Refused.Add(int64(p.Events()))
	}
	message := err.Error()
	s.refusal.Store(&message)
}

func (s *Stats) addRejected(n int64, message string) {
	if n == 0 {
		return
	}
	s.Rejected.Add(n)
	s.rejection.Store(&message)
}
