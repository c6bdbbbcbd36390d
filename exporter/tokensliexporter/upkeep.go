package tokensliexporter

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// upkeepInterval is the most time between two saves of the error budgets, and
// between two looks for series that have expired.
const upkeepInterval = 5 * time.Second

// keepUp lets series expire and saves error budgets, whether or not anybody scrapes.
func (e *tokenSLI) keepUp(ctx context.Context) {
	ticker := time.NewTicker(upkeepEvery(e.config.Series.SeriesExpiration))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			e.telemetry.expired(e.engine.Expire(now))
			if err := e.budgets.Save(ctx, nil); err != nil && ctx.Err() == nil {
				e.telemetry.saveFailed()
				e.settings.Logger.Warn("Error budgets were not saved; they go with the next save", zap.Error(err))
			}
		}
	}
}

// upkeepEvery returns the time between two rounds: no series outlives its expiration
// by more than a quarter.
func upkeepEvery(expiration time.Duration) time.Duration {
	if expiration == 0 {
		return upkeepInterval
	}
	return min(upkeepInterval, expiration/4)
}
