// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

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

// retryAfter is the delay that refused clients are asked to wait.
const retryAfter = time.Second

// refusal is the reason why a batch was refused. Nothing of the batch was applied.
type refusal struct {
	http    int
	grpc    codes.Code
	retry   bool
	message string
}

func (r *refusal) Error() string { return r.message }

var (
	errShutdown  = &refusal{http.StatusServiceUnavailable, codes.Unavailable, true, "the receiver is shutting down; retry with the events that were not accepted"}
	errCancelled = &refusal{http.StatusServiceUnavailable, codes.Unavailable, true, "the request was cancelled while it waited for another request with the same streams; send it again"}
)

// full counts a request that a limit leaves no room for.
func (in *ingester) full(ctx context.Context, err *assembly.FullError) *refusal {
	in.telemetry.ReceiverTokenStreamStreamsRefused.Add(ctx, 1, diagnostics.Label("limit", err.Setting))
	return &refusal{http.StatusTooManyRequests, codes.ResourceExhausted, true, err.Error()}
}

// notStored counts a request whose changes of open streams could not be stored.
func (in *ingester) notStored(ctx context.Context) *refusal {
	in.telemetry.ReceiverTokenStreamStreamsRefused.Add(ctx, 1, diagnostics.Label("limit", "storage"))
	return &refusal{http.StatusServiceUnavailable, codes.Unavailable, true, fmt.Sprintf(
		"open streams cannot be stored, so nothing of the request was applied; send it again later, and check the storage %q of the Collector, whose log has the cause", in.storageID)}
}

// memoryRefusal returns the refusal of a request that there is no room for, or nil for other
// errors.
func (in *ingester) memoryRefusal(ctx context.Context, err error) *refusal {
	var full *assembly.FullError
	if errors.As(err, &full) {
		return in.full(ctx, full)
	}
	if errors.Is(err, assembly.ErrTooMuchMemory) || errors.Is(err, assembly.ErrTooManyParts) {
		in.unreadable(ctx, assembly.Limit)
		return &refusal{http.StatusRequestEntityTooLarge, codes.ResourceExhausted, false, err.Error()}
	}
	return nil
}

// unreadable counts a body or message that is not read, or not to its end.
func (in *ingester) unreadable(ctx context.Context, reason assembly.Reason) {
	in.telemetry.ReceiverTokenStreamEventsRejected.Add(ctx, 1, diagnostics.Label("reason", string(reason)))
}

func pipelineRefusal(err error) *refusal {
	if consumererror.IsPermanent(err) {
		return &refusal{http.StatusBadRequest, codes.InvalidArgument, false, "the pipeline permanently rejects the completed streams: " + err.Error() + "; check the pipeline, and do not send them again"}
	}
	return &refusal{http.StatusServiceUnavailable, codes.Unavailable, true, "the pipeline temporarily refuses data: " + err.Error() + "; send the request again later"}
}

// status returns the gRPC status, with RetryInfo if the client should retry.
func (r *refusal) status() *status.Status {
	plain := status.New(r.grpc, r.message)
	if !r.retry {
		return plain
	}
	detailed, err := plain.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
	if err != nil {
		return plain
	}
	return detailed
}
