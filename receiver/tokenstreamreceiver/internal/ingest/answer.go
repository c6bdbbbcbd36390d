// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"encoding/json"
	"slices"
)

// maxErrors is the maximum number of errors in an answer.
const maxErrors = 10

// Answer is the result of a request. It counts units: lines of NDJSON, or token_streams of the
// other formats.
type Answer struct {
	Accepted int           `json:"accepted"`
	Rejected int           `json:"rejected"`
	Errors   []AnswerError `json:"errors,omitempty"`
}

// AnswerError is why a unit was rejected, or why the request ended.
type AnswerError struct {
	Line     int    `json:"line,omitempty"`
	StreamID string `json:"stream_id,omitempty"`
	Message  string `json:"message"`
	position int    // in the body, or 0
}

// add lists an error once. Errors have the order of the body, although some are found only when the
// batch is applied.
func (a *Answer) add(e AnswerError) {
	same := func(o AnswerError) bool {
		return o.Line == e.Line && o.StreamID == e.StreamID && o.Message == e.Message
	}
	if slices.ContainsFunc(a.Errors, same) {
		return
	}
	at := len(a.Errors)
	for at > 0 && a.Errors[at-1].position > e.position && e.position > 0 {
		at--
	}
	if at < maxErrors {
		a.Errors = slices.Insert(a.Errors, at, e)[:min(len(a.Errors)+1, maxErrors)]
	}
}

// Conclude lists the error that ended the request, in place of another one if the list
// is full.
func (a *Answer) Conclude(message string) {
	a.Errors = append(a.Errors[:min(len(a.Errors), maxErrors-1)], AnswerError{Message: message})
}

// Encode encodes the HTTP answer.
func (a *Answer) Encode() []byte {
	body, _ := json.Marshal(a) // has only types that encode
	return append(body, '\n')
}
