// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"

	"github.com/tokenpulse/tokenpulse/internal/settings"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/readiness"
)

// serveReadiness answers machines that ask whether an upstream is ready, if liveness is configured.
func (r *tokenTapReceiver) serveReadiness(ctx context.Context, host component.Host) (err error) {
	cfg := r.cfg.Liveness.Get()
	if cfg == nil {
		return nil
	}
	r.readiness, err = readiness.Start(ctx, host, &cfg.Server, r.cfg.AllowedHosts, r.engines, r.settings.TelemetrySettings)
	return settings.StartError("liveness", err)
}
