// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"bytes"
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// messageSender posts each batch of parts as one message of the wire schema.
type messageSender struct {
	*httpClient
	contentType string
	encode      func(proto.Message) ([]byte, error)
}

func (s *messageSender) Send(ctx context.Context, parts []stream.Part) error {
	body, err := s.encode(stream.ToProto(parts))
	if err != nil {
		return err
	}
	return sendAgain(ctx, s.stats, func() []stream.Part { return parts }, func(ctx context.Context) (response, error) {
		return s.post(ctx, s.contentType, bytes.NewReader(body))
	})
}
