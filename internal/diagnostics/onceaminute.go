// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// OnceAMinute returns a logger that logs each message at most once a minute: a problem with
// one request is usually a problem with all requests of its sender.
func OnceAMinute(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
	}))
}
