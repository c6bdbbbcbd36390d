// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"regexp"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// maxJSONObjects limits the objects in a JSON body. Three bytes of JSON become a
// message of two hundred bytes in memory.
const maxJSONObjects = 1 << 18

// JSONToProtobuf converts a request in the schema's JSON mapping to protobuf. Trace
// and span IDs may be hexadecimal, as in OTLP, besides protobuf's base64.
func JSONToProtobuf(body []byte) ([]byte, error) {
	// Braces inside of strings count too; no valid request has so many.
	if bytes.Count(body, []byte{'{'}) > maxJSONObjects {
		return nil, assembly.Errorf(assembly.Limit, "the body has more than %d JSON objects; send smaller requests, or protobuf", maxJSONObjects)
	}
	var request tokenpulsev1.ExportTokenStreamsRequest
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, &request); err != nil {
		return nil, malformed("the body is not the JSON mapping of tokenpulse.v1.ExportTokenStreamsRequest%s; compare it with token_stream.proto", where(err))
	}
	for _, resource := range request.GetResourceTokenStreams() {
		for _, stream := range resource.GetTokenStreams() {
			if start := stream.GetStart(); start != nil {
				start.TraceId = fromHex(start.GetTraceId(), 16)
				start.SpanId = fromHex(start.GetSpanId(), 8)
				start.ParentSpanId = fromHex(start.GetParentSpanId(), 8)
			}
		}
	}
	return proto.Marshal(&request)
}

// fromHex recovers a hexadecimal ID of size bytes that protojson decoded as base64.
// Such an ID is half as long again, which no ID in base64 is.
func fromHex(id []byte, size int) []byte {
	if len(id) != size*3/2 {
		return id
	}
	decoded, err := hex.DecodeString(base64.StdEncoding.EncodeToString(id))
	if err != nil {
		return id
	}
	return decoded
}

// position matches the part of a protojson error that contains no text of the body.
var position = regexp.MustCompile(`\(line \d+:\d+\)(: invalid value for \w+ field \w+)?`)

func where(err error) string {
	if found := position.FindString(err.Error()); found != "" {
		return " " + found
	}
	return ""
}
