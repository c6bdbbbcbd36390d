// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// RetryAfter is the delay that refused clients are asked to wait.
const RetryAfter = time.Second

// Refusal is the reason why a batch was refused. Nothing of the batch was applied.
type Refusal struct {
	HTTP    int
	GRPC    codes.Code
	Retry   bool // by the client
	Message string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Reasons that are no fault of the request.
var (
	ErrShutdown  = &Refusal{http.StatusServiceUnavailable, codes.Unavailable, true, "the receiver is shutting down; retry with the events that were not accepted"}
	errCancelled = &Refusal{http.StatusServiceUnavailable, codes.Unavailable, true, "the request was cancelled while it waited for another request with the same streams; send it again"}
)

// Full counts a request that a limit leaves no room for.
func (in *Ingester) Full(ctx context.Context, err *assembly.FullError) *Refusal {
	in.Telemetry.ReceiverTokenStreamStreamsRefused.Add(ctx, 1, diagnostics.Label("limit", err.Setting))
	return &Refusal{http.StatusTooManyRequests, codes.ResourceExhausted, true, err.Error()}
}

// notStored counts a request whose changes of open streams could not be stored.
func (in *Ingester) notStored(ctx context.Context) *Refusal {
	in.Telemetry.ReceiverTokenStreamStreamsRefused.Add(ctx, 1, diagnostics.Label("limit", "storage"))
	return &Refusal{http.StatusServiceUnavailable, codes.Unavailable, true, fmt.Sprintf(
		"open streams cannot be stored, so nothing of the request was applied; send it again later, and check the storage %q of the Collector, whose log has the cause", in.StorageID)}
}

// MemoryRefusal returns the refusal of a request that there is no room for, or nil for other
// errors.
func (in *Ingester) MemoryRefusal(ctx context.Context, err error) *Refusal {
	var full *assembly.FullError
	if errors.As(err, &full) {
		return in.Full(ctx, full)
	}
	if errors.Is(err, assembly.ErrTooMuchMemory) || errors.Is(err, assembly.ErrTooManyParts) {
		in.Unreadable(ctx, assembly.Limit)
		return &Refusal{http.StatusRequestEntityTooLarge, codes.ResourceExhausted, false, err.Error()}
	}
	return nil
}

// Unreadable counts a body or message that is not read, or not to its end.
func (in *Ingester) Unreadable(ctx context.Context, reason assembly.Reason) {
	in.Telemetry.ReceiverTokenStreamEventsRejected.Add(ctx, 1, diagnostics.Label("reason", string(reason)))
}

func pipelineRefusal(err error) *Refusal {
	if consumererror.IsPermanent(err) {
		return &Refusal{http.StatusBadRequest, codes.InvalidArgument, false, "the pipeline permanently rejects the completed streams: " + err.Error() + "; check the pipeline, and do not send them again"}
	}
	return &Refusal{http.StatusServiceUnavailable, codes.Unavailable, true, "the pipeline temporarily refuses data: " + err.Error() + "; send the request again later"}
}

// Status returns the gRPC status, with RetryInfo if the client should retry.
func (r *Refusal) Status() *status.Status {
	plain := status.New(r.GRPC, r.Message)
	if !r.Retry {
		return plain
	}
	detailed, err := plain.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(RetryAfter)})
	if err != nil {
		return plain
	}
	return detailed
}
