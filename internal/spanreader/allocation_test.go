// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package spanreader

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Allocations do not depend on the number of spans. A batch allocates one reader and one
// slice of dimension values and, with verdicts, a slice that grows to one and then to two
// entries.
func TestRead_SpansDoNotAllocate(t *testing.T) {
	plain := map[string]any{"tokenpulse.outcome": "success", "tokenpulse.time_to_first_token": 0.1, "gen_ai.usage.output_tokens": 7}
	judged := map[string]any{"tokenpulse.outcome": "success", "tokenpulse.slo.met": []any{"a"}, "tokenpulse.slo.breached": []any{"b"}}
	for _, test := range []struct {
		span map[string]any
		want float64
	}{{plain, 2}, {judged, 4}} {
		e, now := newEngine(), time.Now()
		options := &Options{Dimensions: NewDimensions(series.DimensionsOf("gen_ai.request.model"))}
		traces := spans(t, test.span, test.span, test.span)
		record := e.Record
		Read(traces, options, now, record)
		require.InDelta(t, test.want, testing.AllocsPerRun(100, func() { Read(traces, options, now, record) }), 0)
	}
}
