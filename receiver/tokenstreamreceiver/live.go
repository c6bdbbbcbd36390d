// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"sync/atomic"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

const settingMaxLiveRequests = "max_live_requests"

// liveLimit limits the requests that may stay open for hours: live NDJSON bodies and
// calls of the gRPC method Stream.
type liveLimit struct {
	open atomic.Int64
	max  int64
}

// begin counts a live request until end, or returns a refusal at the limit.
func (l *liveLimit) begin(ctx context.Context, in *ingester) *refusal {
	if l.open.Add(1) > l.max {
		l.open.Add(-1)
		return in.full(ctx, &assembly.FullError{Setting: settingMaxLiveRequests})
	}
	return nil
}

func (l *liveLimit) end() { l.open.Add(-1) }
