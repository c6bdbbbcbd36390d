// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"strconv"
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
	raise := func(about string, fields ...zap.Field) {
		d.Report(DimensionUnused, Facts{Cases: 100, All: 100}, about, fields...)
	}
	message := "no request has this dimension; check its spelling in `dimensions`, and that the senders set the attribute"
	require.Empty(t, d.Current())
	raise("b")
	now = now.Add(time.Minute)
	raise("a", zap.String("dimension", "a"))
	raise("b")
	require.Equal(t, []Doubt{
		{message, "b", start, now}, {message, "a", now, now},
	}, d.Current(), "each is named")
	require.Equal(t, 2, logs.Len())
	require.Equal(t, "a", logs.All()[1].ContextMap()["dimension"])

	now = now.Add(5 * time.Minute)
	require.Len(t, d.Current(), 2)
	raise("a")
	now = now.Add(time.Nanosecond)
	require.Len(t, d.Current(), 1, "b was not raised for longer")
	raise("b")
	require.Len(t, d.Current(), 2)
	require.Equal(t, 2, logs.Len())
}

func TestDoubts_OfAnUpstreamAreLoggedOnceAMinute(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	now := time.Now()
	d := NewDoubts(zap.New(core), func() time.Time { return now })
	fail := func(upstream string) { d.Report(UpstreamUnreachable, Facts{Cases: 1}, upstream) }
	for range 10 {
		fail("a")
		fail("b")
		now = now.Add(time.Minute / 10)
	}
	require.Equal(t, 2, logs.Len())
	fail("a")
	require.Equal(t, 3, logs.Len())
}

// Senders choose the names.
func TestDoubts_NameLimitedScopes(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	d := NewDoubts(zap.New(core), time.Now)
	for i := range 100 {
		d.Report(CallRepeated, Facts{Cases: 1}, strconv.Itoa(i))
	}
	d.Report(CallRepeated, Facts{Cases: 1}, "3")
	require.Len(t, d.Current(), 8+1)
	require.Equal(t, 8+1, logs.Len())
	for _, doubt := range d.Current()[:8] {
		require.Less(t, doubt.About, "8")
	}
}
