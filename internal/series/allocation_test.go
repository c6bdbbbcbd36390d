// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package series

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// The race detector makes sync.Pool drop values, so this file is built without it.

func TestRecord_KnownSeriesDoesNotAllocate(t *testing.T) {
	e := newTestEngine(nil)
	r := answered("meta-llama/Llama-3.3-70B-Instruct", e.at(0), 0.1)
	*r.Distribution(numbers.InterTokenLatency) = distribution(0.01, 0.02)
	*r.Distribution(numbers.InterChunkLatency) = distribution(0.01, 0.02)
	r.SetValue(numbers.InputTokens, 7)
	r.TraceID[0] = 1
	e.Record(r)
	require.Zero(t, testing.AllocsPerRun(100, func() { e.Record(r) }))
}

func TestRecord_KnownSLODoesNotAllocate(t *testing.T) {
	e := newTestEngine(nil)
	r := judged(e.at(0), "gA", "bB", "nC")
	e.Record(r)
	require.Zero(t, testing.AllocsPerRun(100, func() { e.Record(r) }))
}

func TestRecord_KnownStandardSeriesDoesNotAllocate(t *testing.T) {
	e := newTestEngine(standard)
	r := standardRequest("a", e.at(0))
	h := NewHandle(r)
	e.RecordTo(h, r)
	require.Zero(t, testing.AllocsPerRun(100, func() { e.Record(r) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { e.RecordTo(h, r) }))
}
