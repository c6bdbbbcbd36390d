// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tokenpulse/tokenpulse/internal/inflate"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
)

// messages are the messages of a call.
type messages struct {
	ctx       context.Context
	closing   context.Context
	idle      time.Duration // maximum time until the next message
	requested chan<- struct{}
	received  <-chan received
}

type received struct {
	message *rawMessage
	err     error
}

// receive returns the messages of a call up to its first error. It receives in a
// goroutine, because only the end of the handler, which cancels the context, interrupts
// RecvMsg.
func (s *Server) receive(stream grpc.ServerStream) (*messages, error) {
	if err := checkCompression(stream.Context()); err != nil {
		return nil, err
	}
	requested, results := make(chan struct{}, 1), make(chan received)
	done := stream.Context().Done()
	s.running.Go(func() {
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
	return &messages{stream.Context(), s.settings.Closing, s.settings.IdleTimeout, requested, results}, nil
}

// next waits for a message. The error at the end of the call is io.EOF.
func (m *messages) next() (*rawMessage, error) {
	m.requested <- struct{}{}
	idle := time.NewTimer(m.idle)
	defer idle.Stop()
	select {
	case <-m.closing.Done():
		return nil, ingest.ErrShutdown.Status().Err()
	case <-m.ctx.Done():
		return nil, status.FromContextError(m.ctx.Err()).Err()
	case <-idle.C:
		return nil, status.Errorf(codes.DeadlineExceeded, "no message for %s (idle_timeout); open a new call", m.idle)
	case received := <-m.received:
		return received.message, received.err
	}
}

// checkCompression rejects calls whose messages gRPC would decompress outside of any
// limit. For zstd that is up to 512 MiB, which a header of ten bytes can ask for.
func checkCompression(ctx context.Context) error {
	call, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ RecvCompress() string })
	if !ok {
		return nil
	}
	switch encoding := call.RecvCompress(); encoding {
	case "", "identity", "gzip":
		return nil
	default:
		return status.Errorf(codes.Unimplemented, "compression %q is not supported; use gzip or none", encoding)
	}
}

// defaultMaxMessageSize equals the default of gRPC.
const defaultMaxMessageSize = 4 << 20

// keepCompressed keeps gRPC from decompressing gzip: see readMessage.
type keepCompressed struct{}

// Do implements grpc.Decompressor.
func (keepCompressed) Do(compressed io.Reader) ([]byte, error) { return io.ReadAll(compressed) }

// Type implements grpc.Decompressor.
func (keepCompressed) Type() string { return "gzip" }

// gzipHeader begins a body of gzip. No message of protobuf begins with it.
var gzipHeader = []byte{0x1f, 0x8b}

// readMessage reads a message, decompressed if need be, into the batch of a request.
func (s *Server) readMessage(req *ingest.Request, message []byte) error {
	if !bytes.HasPrefix(message, gzipHeader) {
		return req.Read(message, (*ingest.Request).ReadProtobuf)
	}
	decompressed, err := inflate.Gzip(bytes.NewReader(message), req.Memory.Add)
	if err != nil {
		return err
	}
	body := s.takeBody()
	defer s.putBody(body)
	limit := s.maxMessageSize()
	if err := body.readFrom(io.LimitReader(decompressed, limit+1), 0); err != nil {
		return err
	}
	if int64(len(body.buffer)) > limit {
		return assembly.Errorf(assembly.Limit, "the message is larger than %d bytes after decompression (max_recv_msg_size_mib); send smaller messages", limit)
	}
	return req.Read(body.buffer, (*ingest.Request).ReadProtobuf)
}

func (s *Server) maxMessageSize() int64 {
	if limit := s.settings.GRPC.MaxRecvMsgSizeMiB; limit > 0 {
		return int64(limit) << 20
	}
	return defaultMaxMessageSize
}
