package send

import (
	"context"

	"google.golang.org/grpc"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// grpcStream is an open call of Stream.
type grpcStream struct {
	call   grpc.ClientStreamingClient[tokenpulsev1.ExportTokenStreamsRequest, tokenpulsev1.ExportTokenStreamsResponse]
	cancel context.CancelFunc
}

// openStream begins a call. It outlives ctx, as openNDJSON's request does.
func (c *grpcClient) openStream(ctx context.Context) (conversation, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	call, err := c.client.Stream(c.withHeaders(ctx))
	if err != nil {
		cancel()
		return nil, statusError(err)
	}
	return &grpcStream{call: call, cancel: cancel}, nil
}

func (s *grpcStream) tell(ctx context.Context, parts []stream.Part) error {
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	return s.call.Send(stream.ToProto(parts))
}

func (s *grpcStream) answer(ctx context.Context) (answer, error) {
	defer s.cancel()
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	response, err := s.call.CloseAndRecv()
	if err != nil {
		return answer{}, statusError(err)
	}
	return protoAnswer(response), nil
}
