// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"

	"google.golang.org/grpc"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// grpcStream is an open client-streaming call.
type grpcStream struct {
	call  grpc.ClientStreamingClient[tokenpulsev1.ExportTokenStreamsRequest, tokenpulsev1.ExportTokenStreamsResponse]
	parts int // that were sent
}

func (c *grpcClient) openStream(ctx context.Context) (openRequest, error) {
	call, err := c.client.Stream(c.withHeaders(ctx))
	if err != nil {
		return nil, classify(err)
	}
	return &grpcStream{call: call}, nil
}

func (s *grpcStream) send(parts []stream.Part) error {
	s.parts += len(parts)
	return s.call.Send(stream.ToProto(parts))
}

func (s *grpcStream) finish() (response, error) {
	message, err := s.call.CloseAndRecv()
	if err != nil {
		return failed(err, s.parts)
	}
	return protoResponse(message), nil
}
