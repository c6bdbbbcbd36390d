// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// Export implements the unary call.
func (r *fakeReceiver) Export(ctx context.Context, message *tokenpulsev1.ExportTokenStreamsRequest) (*tokenpulsev1.ExportTokenStreamsResponse, error) {
	if err := r.grpcRefusal(ctx); err != nil {
		return nil, err
	}
	r.countReceived()
	if err := r.accept(message); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return r.response(), nil
}

// Stream implements the client-streaming call.
func (r *fakeReceiver) Stream(call grpc.ClientStreamingServer[tokenpulsev1.ExportTokenStreamsRequest, tokenpulsev1.ExportTokenStreamsResponse]) error {
	if err := r.grpcRefusal(call.Context()); err != nil {
		return err
	}
	for {
		message, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return call.SendAndClose(r.response())
		}
		if err != nil {
			return err
		}
		r.countReceived()
		if err := r.accept(message); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
	}
}

func (r *fakeReceiver) response() *tokenpulsev1.ExportTokenStreamsResponse {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.rejects == 0 {
		return &tokenpulsev1.ExportTokenStreamsResponse{}
	}
	return &tokenpulsev1.ExportTokenStreamsResponse{PartialSuccess: &tokenpulsev1.ExportTokenStreamsPartialSuccess{
		RejectedTokenStreams: r.rejects, ErrorMessage: "wrong",
	}}
}

func (r *fakeReceiver) grpcRefusal(ctx context.Context) error {
	incoming, _ := metadata.FromIncomingContext(ctx)
	refused, ok := r.begin(strings.Join(incoming.Get("authorization"), ","))
	if !ok {
		return nil
	}
	s := status.New(refused.Code, "not now")
	if refused.RetryAfter > 0 {
		s, _ = s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(refused.RetryAfter)})
	}
	return s.Err()
}
