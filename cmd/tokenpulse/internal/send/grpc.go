// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// grpcClient is connected to the receiver. Its Send makes one unary call per batch of
// parts.
type grpcClient struct {
	connection *grpc.ClientConn
	client     tokenpulsev1.TokenStreamServiceClient
	headers    metadata.MD
	stats      *Stats
}

func newGRPCClient(config Config) (*grpcClient, error) {
	hostPort, tls := config.address(defaultGRPCEndpoint)
	credential := insecure.NewCredentials()
	if tls {
		credential = credentials.NewTLS(nil)
	}
	connection, err := grpc.NewClient(hostPort, grpc.WithTransportCredentials(credential))
	if err != nil {
		return nil, err
	}
	return &grpcClient{
		connection: connection,
		client:     tokenpulsev1.NewTokenStreamServiceClient(connection),
		headers:    metadata.New(config.Headers),
		stats:      config.Stats,
	}, nil
}

func (c *grpcClient) Send(ctx context.Context, parts []stream.Part) error {
	request := stream.ToProto(parts)
	return sendAgain(ctx, c.stats, func() []stream.Part { return parts }, func(ctx context.Context) (response, error) {
		message, err := c.client.Export(c.withHeaders(ctx), request)
		if err != nil {
			return failed(err, len(parts))
		}
		return protoResponse(message), nil
	})
}

func (c *grpcClient) Close(context.Context) error { return c.connection.Close() }

func (c *grpcClient) withHeaders(ctx context.Context) context.Context {
	return metadata.NewOutgoingContext(ctx, c.headers)
}

// failed returns the response to a call that failed. INVALID_ARGUMENT says that nothing of the
// call was accepted. After a restart, a live call may have only events of streams that the
// receiver does not know any more. Traffic goes on with the next streams.
func failed(err error, parts int) (response, error) {
	if s := status.Convert(err); s.Code() == codes.InvalidArgument {
		return response{rejected: int64(parts), message: s.Message()}, nil
	}
	return response{}, classify(err)
}

// classify makes errors with a temporary status retryable.
func classify(err error) error {
	switch s := status.Convert(err); s.Code() {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return &retryableError{cause: err, retryAfter: retryDelay(s)}
	default:
		return err
	}
}

func retryDelay(s *status.Status) time.Duration {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}
