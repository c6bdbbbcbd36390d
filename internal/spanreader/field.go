// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// field reads an attribute.
type field func(*reader, pcommon.Value)

// fields holds the attributes that are read: those below, and the numbers of which series have a
// histogram or a sum.
var fields = func() map[string]field {
	all := map[string]field{
		names.Outcome:        (*reader).outcome,
		names.StalledAtEnd:   func(r *reader, v pcommon.Value) { r.StalledAtEnd = v.Bool() },
		names.Cut:            func(r *reader, v pcommon.Value) { r.Cut = v.Str() == names.CutCollector },
		names.Aggregated:     func(r *reader, v pcommon.Value) { r.aggregated = v.Bool() },
		names.Vantage:        func(r *reader, v pcommon.Value) { r.Request.Vantage = labelValue(v) },
		names.SLOMet:         func(r *reader, v pcommon.Value) { r.judged[slo.Good] = optional.Of(v) },
		names.SLOBreached:    func(r *reader, v pcommon.Value) { r.judged[slo.Bad] = optional.Of(v) },
		names.SLONotEligible: func(r *reader, v pcommon.Value) { r.judged[slo.NotEligible] = optional.Of(v) },
		names.SLOOfTrace:     func(r *reader, v pcommon.Value) { r.ofTrace = optional.Of(v) },
		names.Unmeasured:     (*reader).unmeasured,

		numbers.TokenCount.Attribute():     func(r *reader, v pcommon.Value) { r.wholeNumber(&r.TokenCount, v) },
		numbers.ChunkCount.Attribute():     func(r *reader, v pcommon.Value) { r.wholeNumber(&r.ChunkCount, v) },
		numbers.ClockAnomalies.Attribute(): func(r *reader, v pcommon.Value) { r.wholeNumber(&r.ClockAnomalies, v) },

		numbers.InterTokenLatency.Attribute(): func(r *reader, v pcommon.Value) { r.sketch(&r.TokenGaps, v) },
		numbers.InterChunkLatency.Attribute(): (*reader).chunkSketch,
		numbers.InterTokenMax.Attribute():     func(r *reader, v pcommon.Value) { r.number(&r.TokenGaps.Max, v) },
		numbers.InterChunkMax.Attribute():     (*reader).longestChunkGap,
	}
	for _, id := range numbers.Histograms {
		switch {
		case id >= numbers.Singles:
		case id.OfTrace():
			all[id.Attribute()] = (*reader).timeToAnswer
		default:
			all[id.Attribute()] = value(id)
		}
	}
	for _, id := range numbers.Sums {
		if id.Row().Whole {
			all[id.Attribute()] = sum(id, wholeNumber)
		} else {
			all[id.Attribute()] = sum(id, number)
		}
	}
	return all
}()
