// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
)

const settingMaxLiveRequests = "max_live_requests"

// beginLive counts a request that may stay open for hours until end: a live NDJSON body, or a call of
// the gRPC method Stream. It returns a refusal at the limit.
func (s *Server) beginLive(ctx context.Context) (end func(), refused *ingest.Refusal) {
	client := httpguard.ClientOf(ctx)
	switch s.LiveShares.Take(client) {
	case httpguard.Full:
		return nil, s.ingester.Full(ctx, &assembly.FullError{Setting: settingMaxLiveRequests})
	case httpguard.ShareFull:
		return nil, s.ingester.Full(ctx, &assembly.FullError{Setting: assembly.SettingMaxSharePerClient, Of: settingMaxLiveRequests})
	}
	return func() { s.LiveShares.Give(client) }, nil
}
