// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestOnceAMinute_LogsEachMessageOnce(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	logger := OnceAMinute(zap.New(core))
	for range 3 {
		logger.Warn("first")
		logger.Warn("second")
	}
	require.Len(t, logs.FilterMessage("first").All(), 1)
	require.Len(t, logs.FilterMessage("second").All(), 1)
}
