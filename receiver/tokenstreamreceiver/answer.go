// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

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

// answer is the result of a request. It counts units: lines of NDJSON, log records, or
// token_streams of the other formats.
type answer struct {
	Accepted int           `json:"accepted"`
	Rejected int           `json:"rejected"`
	Errors   []answerError `json:"errors,omitempty"`
}

type answerError struct {
	Line     int    `json:"line,omitempty"`
	StreamID string `json:"stream_id,omitempty"`
	Message  string `json:"message"`
	mistake  string // as assembly.MistakeOf returns it
	units    int
	position int // in the body, or 0
}

// add lists an error, or adds its units to that of the same mistake. The first message stays. Errors have
// the order of the body, although whole streams may be decoded after those that follow them.
func (a *answer) add(e answerError) {
	for i := range a.Errors {
		same := &a.Errors[i]
		if same.Line == e.Line && same.StreamID == e.StreamID && same.mistake == e.mistake {
			same.units += e.units
			return
		}
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

// logsResponse returns the OTLP response to an applied request of logs.
func (a *answer) logsResponse() plogotlp.ExportResponse {
	response := plogotlp.NewExportResponse()
	response.PartialSuccess().SetRejectedLogRecords(int64(a.Rejected))
	response.PartialSuccess().SetErrorMessage(a.messages())
	return response
}

// messages joins the messages, which contain semicolons, with the number of records of each.
func (a *answer) messages() string {
	var messages []string
	for _, e := range a.Errors {
		message := e.Message
		if e.units > 1 {
			message += fmt.Sprintf(" (%d records)", e.units)
		}
		messages = append(messages, message)
	}
	return strings.Join(messages, " | ")
}

// The encoders below ignore errors, because answers have only types that encode.

// encodeTokens encodes the HTTP answer to a request of token streams.
func (a *answer) encodeTokens() (body []byte, contentType string) {
	body, _ = json.Marshal(a)
	return append(body, '\n'), typeJSON
}

// encodeLogs encodes the HTTP answer to a request of logs as OTLP specifies: an
// ExportLogsServiceResponse, or a Status if the request failed, in the encoding of the
// request.
func (a *answer) encodeLogs(status int, mediaType string) (body []byte, contentType string) {
	ok := status == http.StatusOK
	if mediaType == typeProtobuf {
		if ok {
			body, _ = a.logsResponse().MarshalProto()
		} else {
			body, _ = proto.Marshal(&rpcstatus.Status{Message: a.messages()})
		}
		return body, typeProtobuf
	}
	if ok {
		body, _ = a.logsResponse().MarshalJSON()
	} else {
		body, _ = json.Marshal(map[string]string{"message": a.messages()})
	}
	return body, typeJSON
}
