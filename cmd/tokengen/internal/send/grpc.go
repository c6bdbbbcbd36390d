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

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// grpcClient calls the receiver.
type grpcClient struct {
	connection *grpc.ClientConn
	client     tokenpulsev1.TokenStreamServiceClient
	headers    metadata.MD
}

func newGRPCClient(config Config) (*grpcClient, error) {
	hostPort, tls := address(config.Endpoint, defaultGRPCEndpoint)
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
	}, nil
}

func (c *grpcClient) close() error { return c.connection.Close() }

func (c *grpcClient) withHeaders(ctx context.Context) context.Context {
	return metadata.NewOutgoingContext(ctx, c.headers)
}

// grpcSender sends each batch with the unary call.
type grpcSender struct {
	retrier    retrier
	grpcClient *grpcClient
}

func (s *grpcSender) Send(ctx context.Context, parts []stream.Part) error {
	request := stream.ToProto(parts)
	return s.retrier.do(ctx, func(ctx context.Context) (answer, error) {
		response, err := s.grpcClient.client.Export(s.grpcClient.withHeaders(ctx), request)
		if err != nil {
			return answer{}, statusError(err)
		}
		return protoAnswer(response), nil
	})
}

func (s *grpcSender) Close(context.Context) error { return s.grpcClient.close() }

// statusError tells refusals for now from those for good.
func statusError(err error) error {
	switch s := status.Convert(err); s.Code() {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return &refusal{cause: err, after: retryDelay(s)}
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
