// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"encoding/json"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// The media types of requests and answers.
const (
	typeNDJSON   = "application/x-ndjson"
	typeJSON     = "application/json"
	typeProtobuf = "application/x-protobuf"
)

// maxErrors is the maximum number of errors in an answer.
const maxErrors = 10

// answer is the result of a request. It counts units: lines of NDJSON, or token_streams of the
// other formats.
type answer struct {
	Accepted int           `json:"accepted"`
	Rejected int           `json:"rejected"`
	Errors   []answerError `json:"errors,omitempty"`
}

type answerError struct {
	Line     int    `json:"line,omitempty"`
	StreamID string `json:"stream_id,omitempty"`
	Message  string `json:"message"`
	position int    // in the body, or 0
}

// add lists an error once. Errors have the order of the body, although some are found only when the
// batch is applied.
func (a *answer) add(e answerError) {
	same := func(o answerError) bool {
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

// conclude lists the error that ended the request, in place of another one if the list
// is full.
func (a *answer) conclude(message string) {
	a.Errors = append(a.Errors[:min(len(a.Errors), maxErrors-1)], answerError{Message: message})
}

// tokensResponse returns the gRPC response to an applied request of token streams. It is
// an error if nothing was accepted.
func (a *answer) tokensResponse() (*tokenpulsev1.ExportTokenStreamsResponse, error) {
	response := &tokenpulsev1.ExportTokenStreamsResponse{}
	if len(a.Errors) == 0 {
		return response, nil
	}
	first := a.Errors[0].Message
	if a.Accepted == 0 {
		return nil, status.Error(codes.InvalidArgument, first)
	}
	response.PartialSuccess = &tokenpulsev1.ExportTokenStreamsPartialSuccess{
		RejectedTokenStreams: int64(a.Rejected),
		ErrorMessage:         first,
	}
	return response, nil
}

// encode encodes the HTTP answer.
func (a *answer) encode() []byte {
	body, _ := json.Marshal(a) // has only types that encode
	return append(body, '\n')
}
