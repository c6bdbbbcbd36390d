package send

import (
	"bytes"
	"context"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
)

// batchSender posts each batch as a message of the wire schema.
type batchSender struct {
	retrier     retrier
	httpClient  *httpClient
	contentType string
	encode      func(proto.Message) ([]byte, error)
}

func encodeJSON(m proto.Message) ([]byte, error)     { return protojson.Marshal(m) }
func encodeProtobuf(m proto.Message) ([]byte, error) { return proto.Marshal(m) }

func (s *batchSender) Send(ctx context.Context, parts []stream.Part) error {
	body, err := s.encode(stream.ToProto(parts))
	if err != nil {
		return err
	}
	return s.retrier.do(ctx, func(ctx context.Context) (answer, error) {
		return s.httpClient.post(ctx, s.contentType, bytes.NewReader(body))
	})
}

func (s *batchSender) Close(context.Context) error { return s.httpClient.close() }
