// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"errors"
	"io"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

func (r *tokenStreamReceiver) startGRPC(ctx context.Context, host component.Host) error {
	cfg := r.cfg.Protocols.GRPC.Get()
	if cfg == nil {
		return nil
	}
	codec := rawCodec{encoding.GetCodecV2("proto")}
	server, err := cfg.ToServer(ctx, host.GetExtensions(), r.settings.TelemetrySettings,
		configgrpc.WithGrpcServerOption(grpc.ForceServerCodecV2(codec)))
	if err != nil {
		return err
	}
	server.RegisterService(&tokenStreamService, r)
	server.RegisterService(&logsService, r)
	listener, err := cfg.NetAddr.Listen(ctx)
	if err != nil {
		return err
	}
	r.serverGRPC, r.addrGRPC = server, listener.Addr()
	r.serve(host, "gRPC", listener, server.Serve, grpc.ErrServerStopped)
	return nil
}

// stopGRPC lets calls in progress finish until ctx ends, then aborts them.
func (r *tokenStreamReceiver) stopGRPC(ctx context.Context) {
	if r.serverGRPC == nil {
		return
	}
	// Stop makes GracefulStop return.
	stop := context.AfterFunc(ctx, r.serverGRPC.Stop)
	defer stop()
	r.serverGRPC.GracefulStop()
	r.serverGRPC = nil
}

// rawMessage is an encoded request, which the decoders of package wire read in place.
type rawMessage struct{ mem.Buffer }

// rawCodec keeps raw messages encoded, lets pdata messages encode themselves, and leaves
// all other messages to the codec that gRPC uses by default.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(interface{ MarshalProto() ([]byte, error) })
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	encoded, err := message.MarshalProto()
	return mem.BufferSlice{mem.SliceBuffer(encoded)}, err
}

func (c rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	raw, ok := v.(*rawMessage)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	raw.Buffer = data.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}

// tokenStreamService is the TokenStreamService with raw messages.
var tokenStreamService = grpc.ServiceDesc{
	ServiceName: tokenpulsev1.TokenStreamService_ServiceDesc.ServiceName,
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{exportMethod(tokenpulsev1.TokenStreamService_Export_FullMethodName, (*tokenStreamReceiver).export)},
	Streams:     []grpc.StreamDesc{{StreamName: "Stream", Handler: handleStream, ClientStreams: true}},
	Metadata:    tokenpulsev1.TokenStreamService_ServiceDesc.Metadata,
}

const logsServiceName = "opentelemetry.proto.collector.logs.v1.LogsService"

// logsService is OTLP's LogsService with raw messages.
var logsService = grpc.ServiceDesc{
	ServiceName: logsServiceName,
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{exportMethod("/"+logsServiceName+"/Export", (*tokenStreamReceiver).exportLogs)},
	Metadata:    "opentelemetry/proto/collector/logs/v1/logs_service.proto",
}

// exportMethod returns the method Export of a service.
func exportMethod(fullName string, export func(*tokenStreamReceiver, context.Context, *rawMessage) (any, error)) grpc.MethodDesc {
	handle := func(server any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC's signature
		raw := new(rawMessage)
		if err := decode(raw); err != nil {
			return nil, err
		}
		defer raw.Free()
		if interceptor == nil {
			return export(server.(*tokenStreamReceiver), ctx, raw)
		}
		info := &grpc.UnaryServerInfo{Server: server, FullMethod: fullName}
		return interceptor(ctx, raw, info, func(ctx context.Context, message any) (any, error) {
			return export(server.(*tokenStreamReceiver), ctx, message.(*rawMessage))
		})
	}
	return grpc.MethodDesc{MethodName: "Export", Handler: handle}
}

func handleStream(server any, stream grpc.ServerStream) error {
	return server.(*tokenStreamReceiver).stream(stream)
}

// export applies the whole message.
func (r *tokenStreamReceiver) export(ctx context.Context, message *rawMessage) (any, error) {
	var applied answer
	if err := r.commitMessage(ctx, message, false, (*request).readProtobuf, &applied); err != nil {
		return nil, err
	}
	return applied.tokensResponse()
}

// exportLogs applies the whole message.
func (r *tokenStreamReceiver) exportLogs(ctx context.Context, message *rawMessage) (any, error) {
	var applied answer
	if err := r.commitMessage(ctx, message, true, (*request).readLogsProtobuf, &applied); err != nil {
		return nil, err
	}
	return applied.logsResponse(), nil
}

// stream applies each message as a whole when it arrives.
func (r *tokenStreamReceiver) stream(stream grpc.ServerStream) error {
	ctx := stream.Context()
	if refused := r.liveRequests.begin(ctx, r.ingester); refused != nil {
		return refused.status().Err()
	}
	defer r.liveRequests.end()
	idle := time.NewTimer(r.cfg.IdleTimeout)
	defer idle.Stop()
	next, messages := r.receive(stream)
	var applied answer
	for {
		next <- struct{}{}
		select {
		case <-r.closing.Done():
			return errShutdown.status().Err()
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-idle.C:
			return status.Errorf(codes.DeadlineExceeded, "no message for %s (idle_timeout)", r.cfg.IdleTimeout)
		case received := <-messages:
			if errors.Is(received.err, io.EOF) {
				response, err := applied.tokensResponse()
				if err != nil {
					return err
				}
				return stream.SendMsg(response)
			}
			if received.err != nil {
				return received.err
			}
			err := r.commitMessage(ctx, received.message, false, (*request).readProtobuf, &applied)
			received.message.Free()
			if err != nil {
				return err
			}
			idle.Reset(r.cfg.IdleTimeout)
		}
	}
}

type received struct {
	message *rawMessage
	err     error
}

// receive returns channels that request and return the next message of a stream, up to
// its first error. It receives in a goroutine, because only the end of the handler, which
// cancels the context, interrupts RecvMsg.
func (r *tokenStreamReceiver) receive(stream grpc.ServerStream) (next chan<- struct{}, messages <-chan received) {
	requested, results := make(chan struct{}, 1), make(chan received)
	done := stream.Context().Done()
	r.running.Go(func() {
		for {
			select {
			case <-requested:
			case <-done:
				return
			}
			message := new(rawMessage)
			err := stream.RecvMsg(message)
			select {
			case results <- received{message, err}:
			case <-done:
				if err == nil {
					message.Free()
				}
				return
			}
			if err != nil {
				return
			}
		}
	})
	return requested, results
}

// commitMessage applies the whole message and adds the result to applied, or returns the
// status of the error.
func (r *tokenStreamReceiver) commitMessage(ctx context.Context, message *rawMessage, byEvent bool, read func(*request, []byte) error, applied *answer) error {
	req := r.take(r.reportGRPC, byEvent, applied)
	defer r.put(req)
	err := req.memory.add(int64(message.Len()))
	if err == nil {
		err = r.decode(req, message.ReadOnlyData(), read)
	}
	if err == nil {
		if refused := req.commit(ctx); refused != nil {
			return refused.status().Err()
		}
		return nil
	}
	if refused := r.ingester.memoryRefusal(ctx, err); refused != nil {
		return refused.status().Err()
	}
	r.ingester.unreadable(ctx, assembly.Malformed)
	code := codes.InvalidArgument
	if assembly.ReasonOf(err) == assembly.Limit {
		code = codes.ResourceExhausted
	}
	return status.Error(code, err.Error())
}
