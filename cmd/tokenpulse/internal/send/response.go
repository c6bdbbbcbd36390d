// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"

	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// response is the receiver's response to a request.
type response struct {
	accepted int // not known from protobuf
	rejected int64
	message  string // of the first rejection
}

// parseResponse decodes the body of an HTTP response.
func parseResponse(contentType string, body []byte) (response, error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return response{}, fmt.Errorf("the response has Content-Type %q; check that --endpoint is a token_stream receiver", contentType)
	}
	if mediaType != contentTypeProtobuf {
		return parseJSONResponse(body)
	}
	var message tokenpulsev1.ExportTokenStreamsResponse
	if err := proto.Unmarshal(body, &message); err != nil {
		return response{}, fmt.Errorf("decode the response: %w", err)
	}
	return protoResponse(&message), nil
}

func parseJSONResponse(body []byte) (response, error) {
	var decoded struct {
		Accepted int   `json:"accepted"`
		Rejected int64 `json:"rejected"`
		Errors   []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(body, &decoded); err != nil {
		return response{}, errors.New("the response is not JSON; check that --endpoint is a token_stream receiver")
	}
	r := response{accepted: decoded.Accepted, rejected: decoded.Rejected}
	if len(decoded.Errors) > 0 {
		r.message = decoded.Errors[0].Message
	}
	return r, nil
}

func protoResponse(message *tokenpulsev1.ExportTokenStreamsResponse) response {
	partial := message.GetPartialSuccess()
	return response{rejected: partial.GetRejectedTokenStreams(), message: partial.GetErrorMessage()}
}
