// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
)

func (s *Server) startGRPC(ctx context.Context, host component.Host) error {
	cfg := s.settings.GRPC
	if cfg == nil {
		return nil
	}
	metered := meteredCredentials{insecure.NewCredentials(), s.ingester.Store, func(err error) {
		_ = s.ingester.MemoryRefusal(context.Background(), err) // counts it
	}}
	if cfg.TLS.HasValue() {
		tlsConfig, err := cfg.TLS.Get().LoadTLSConfig(ctx)
		if err != nil {
			return err
		}
		metered.TransportCredentials = credentials.NewTLS(tlsConfig)
	}
	var options []configgrpc.ToServerOption
	for _, option := range []grpc.ServerOption{
		grpc.ForceServerCodecV2(rawCodec{encoding.GetCodecV2("proto")}),
		grpc.Creds(metered),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.StaticStreamWindowSize(unreadBytes),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.RPCDecompressor(keepCompressed{}), //nolint:staticcheck // the alternative is global
	} {
		options = append(options, configgrpc.WithGrpcServerOption(option))
	}
	server, err := cfg.ToServer(ctx, host.GetExtensions(), s.settings.Receiver.TelemetrySettings, options...)
	if err != nil {
		return err
	}
	server.RegisterService(&tokenStreamService, s)
	server.RegisterService(&logsService, s)
	listener, err := cfg.NetAddr.Listen(ctx)
	if err != nil {
		return err
	}
	s.grpc, s.AddrGRPC = server, listener.Addr()
	s.serve(host, "gRPC", listener, server.Serve, grpc.ErrServerStopped)
	return nil
}

// stopGRPC lets calls in progress finish until ctx ends, then aborts them.
func (s *Server) stopGRPC(ctx context.Context) {
	if s.grpc == nil {
		return
	}
	// Stop makes GracefulStop return.
	stop := context.AfterFunc(ctx, s.grpc.Stop)
	defer stop()
	s.grpc.GracefulStop()
	s.grpc = nil
}

// rawMessage is an encoded request, which the decoders of package wire read in place.
type rawMessage struct{ mem.Buffer }

// rawCodec keeps raw messages encoded, and leaves all other messages to the codec that
// gRPC uses by default.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	raw, ok := v.(*rawMessage)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	raw.Buffer = data.MaterializeToBuffer(messageBuffers)
	return nil
}

// messageBuffers has more sizes than gRPC's default pool, which takes and clears 1 MiB for
// each message of more than 32 KiB. Larger messages than the last size get their own size.
var messageBuffers = mem.NewTieredBufferPool(
	4<<10, 8<<10, 16<<10, 32<<10, 64<<10, 128<<10, 256<<10, 512<<10, 1<<20, 2<<20, 4<<20)

// The limits of what gRPC holds for a client. A message may exceed unreadBytes: its
// window grows once the handler waits for it.
const (
	maxHeaderBytes   = 16 << 10 // of a call
	unreadBytes      = 64 << 10 // of a call whose handler does not wait for a message
	connectionWindow = 4 << 20  // bytes on their way
	// callMemory is about the memory of a call of Export besides its message.
	callMemory = 32 << 10
)

// tokenStreamService is the TokenStreamService with raw messages. Export is registered as
// a stream, because gRPC reads a unary message before it calls the handler: without a
// time limit.
var tokenStreamService = grpc.ServiceDesc{
	ServiceName: tokenpulsev1.TokenStreamService_ServiceDesc.ServiceName,
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{
		method("Export"),
		method("Stream"),
	},
	Metadata: tokenpulsev1.TokenStreamService_ServiceDesc.Metadata,
}

// method returns a method of a service, which applies each message as a whole when it arrives:
// one message of Export, any number of Stream.
func method(name string) grpc.StreamDesc {
	live := name == "Stream"
	return grpc.StreamDesc{StreamName: name, ClientStreams: true, Handler: func(server any, stream grpc.ServerStream) error {
		s, ctx := server.(*Server), stream.Context()
		if live {
			end, refused := s.beginLive(ctx)
			if refused != nil {
				return refused.Status().Err()
			}
			defer end()
		} else {
			memory := ingest.Reservation{Store: s.ingester.Store}
			if err := memory.Add(callMemory); err != nil {
				return s.ingester.MemoryRefusal(ctx, err).Status().Err()
			}
			defer memory.Free()
		}
		messages, err := s.receive(stream)
		if err != nil {
			return err
		}
		var applied ingest.Answer
		for more := true; more; more = live {
			message, err := messages.next()
			if live && errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				err = s.commitMessage(ctx, message, &applied)
				message.Free()
			}
			if err != nil {
				return err
			}
		}
		response, err := tokensResponse(&applied)
		if err != nil {
			return err
		}
		return stream.SendMsg(response)
	}}
}

// commitMessage applies the whole message and adds the result to applied, or returns the
// status of the error.
func (s *Server) commitMessage(ctx context.Context, message *rawMessage, applied *ingest.Answer) error {
	req := s.ingester.Take(s.reportGRPC, false, applied)
	defer s.ingester.Put(req)
	err := req.Memory.Add(int64(message.Len()))
	if err == nil {
		err = s.readMessage(req, message.ReadOnlyData())
	}
	if refused := req.CommitRead(ctx, err); refused != nil {
		return refused.Status().Err()
	}
	return nil
}

// tokensResponse returns the gRPC response to an applied request of token streams. It is
// an error if nothing was accepted.
func tokensResponse(a *ingest.Answer) (*tokenpulsev1.ExportTokenStreamsResponse, error) {
	response := &tokenpulsev1.ExportTokenStreamsResponse{}
	if len(a.Errors) == 0 {
		return response, nil
	}
	first := a.Errors[0].Message
	if a.Accepted == 0 {
		return nil, status.Error(codes.InvalidArgument, first)
	}
	response.PartialSuccess = &tokenpulsev1.ExportTokenStreamsPartialSuccess{
		RejectedTokenStreams: int64(a.Rejected),
		ErrorMessage:         first,
	}
	return response, nil
}
