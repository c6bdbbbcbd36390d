// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestDoubts_AreLoggedOnceAndLapseFiveMinutesAfterTheirCause(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	start := time.Now()
	now := start
	d := NewDoubts(zap.New(core), func() time.Time { return now })
	require.Empty(t, d.Current())
	d.Raise("an upstream fails", "b")
	now = now.Add(time.Minute)
	d.Raise("an upstream fails", "a", zap.String("upstream", "a"))
	d.Raise("an upstream fails", "b")
	require.Equal(t, []Doubt{
		{"an upstream fails", "b", start, now}, {"an upstream fails", "a", now, now},
	}, d.Current(), "each is named")
	require.Equal(t, 2, logs.Len())
	require.Equal(t, "a", logs.All()[1].ContextMap()["upstream"])

	now = now.Add(5 * time.Minute)
	require.Len(t, d.Current(), 2)
	d.Raise("an upstream fails", "a")
	now = now.Add(time.Nanosecond)
	require.Len(t, d.Current(), 1, "b was not raised for longer")
	d.Raise("an upstream fails", "b")
	require.Len(t, d.Current(), 2)
	require.Equal(t, 2, logs.Len())
}
