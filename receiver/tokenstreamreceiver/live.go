// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

const settingMaxLiveRequests = "max_live_requests"

// beginLive counts a request that may stay open for hours until end: a live NDJSON body, or a call of
// the gRPC method Stream. It returns a refusal at the limit.
func (r *tokenStreamReceiver) beginLive(ctx context.Context) (end func(), refused *refusal) {
	client := httpguard.ClientOf(ctx)
	switch r.liveShares.Take(client) {
	case httpguard.Full:
		return nil, r.ingester.full(ctx, &assembly.FullError{Setting: settingMaxLiveRequests})
	case httpguard.ShareFull:
		return nil, r.ingester.full(ctx, &assembly.FullError{Setting: assembly.SettingMaxSharePerClient, Of: settingMaxLiveRequests})
	}
	return func() { r.liveShares.Give(client) }, nil
}
