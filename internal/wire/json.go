package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"regexp"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// maxJSONObjects bounds the objects in a body of JSON. One of three bytes becomes a
// message of two hundred.
const maxJSONObjects = 1 << 18

// JSONToProtobuf turns the schema's JSON mapping into protobuf. As in OTLP, trace
// and span ids may be in hexadecimal, besides protobuf's own base64.
func JSONToProtobuf(body []byte) ([]byte, error) {
	// Braces in a text count too: no text here has so many.
	if bytes.Count(body, []byte{'{'}) > maxJSONObjects {
		return nil, assembly.Errorf(assembly.Limit, "the body has more than %d JSON objects: send smaller ones, or protobuf", maxJSONObjects)
	}
	var request tokenpulsev1.ExportTokenStreamsRequest
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, &request); err != nil {
		return nil, malformed("the body is not the JSON mapping of tokenpulse.v1.ExportTokenStreamsRequest%s", where(err))
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

// fromHex recovers an id of size bytes that was hexadecimal and was read as
// base64: then it has half as many bytes again. No base64 of an id has.
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

// position finds the part of protojson's errors that holds nothing of the body.
var position = regexp.MustCompile(`\(line \d+:\d+\)(: invalid value for \w+ field \w+)?`)

func where(err error) string {
	if found := position.FindString(err.Error()); found != "" {
		return " " + found
	}
	return ""
}
