// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"net"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/recording"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/send"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// fakeReceiver replaces the token_stream receiver. It runs real HTTP and gRPC servers
// and keeps the streams that they accept.
type fakeReceiver struct {
	tokenpulsev1.UnimplementedTokenStreamServiceServer
	t          *testing.T
	http, grpc string

	// mu guards everything declared below.
	mu             sync.Mutex
	refusals       []refusal
	rejects        int64
	lines          bytes.Buffer // NDJSON
	streams        map[string]*stream.Stream
	order          []*stream.Stream
	received       int
	requests       int
	authorizations []string
}

// refusal is an error response to a request.
type refusal struct {
	Status     int
	Code       codes.Code
	RetryAfter time.Duration
	// AfterLines is how many lines of an NDJSON request the receiver accepts before
	// it refuses the rest. The response contains this number.
	AfterLines int
}

// startReceiver runs a receiver until the test ends.
func startReceiver(t *testing.T) *fakeReceiver {
	t.Helper()
	r := &fakeReceiver{t: t, streams: map[string]*stream.Stream{}}
	httpServer := httptest.NewServer(r)
	t.Cleanup(httpServer.Close)
	r.http = httpServer.Listener.Addr().String()

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	require.NoError(t, err)
	grpcServer := grpc.NewServer()
	tokenpulsev1.RegisterTokenStreamServiceServer(grpcServer, r)
	var served sync.WaitGroup
	served.Go(func() { _ = grpcServer.Serve(listener) })
	t.Cleanup(func() {
		grpcServer.Stop()
		served.Wait()
	})
	r.grpc = listener.Addr().String()
	return r
}

// Endpoint returns the receiver's address for a transport.
func (r *fakeReceiver) Endpoint(transport send.Transport) string {
	if transport == send.GRPC || transport == send.GRPCStream {
		return r.grpc
	}
	return r.http
}

// Refuse makes the receiver refuse the next requests, one per refusal.
func (r *fakeReceiver) Refuse(refusals ...refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals = refusals
}

// Reject makes every response report this many rejected items.
func (r *fakeReceiver) Reject(items int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rejects = items
}

// Received returns how many NDJSON lines or protobuf messages have arrived, including
// those of requests that are still open.
func (r *fakeReceiver) Received() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received
}

// Requests returns how many requests were accepted.
func (r *fakeReceiver) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// Authorizations returns the authorization header of every request.
func (r *fakeReceiver) Authorizations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.authorizations)
}

// Streams returns the accepted streams in the order of their starts.
func (r *fakeReceiver) Streams() []*stream.Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lines.Len() > 0 {
		streams, err := recording.Read(r.t.Context(), bytes.NewReader(r.lines.Bytes()))
		require.NoError(r.t, err)
		return streams
	}
	return slices.SortedStableFunc(slices.Values(r.order), func(a, b *stream.Stream) int { return cmp.Compare(a.Start, b.Start) })
}

// begin records the authorization of a new request. It returns the request's refusal
// and true if the request is to be refused.
func (r *fakeReceiver) begin(authorization string) (refusal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.authorizations = append(r.authorizations, authorization)
	if len(r.refusals) == 0 {
		return refusal{}, false
	}
	first := r.refusals[0]
	r.refusals = r.refusals[1:]
	return first, true
}

func (r *fakeReceiver) countReceived() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received++
}
