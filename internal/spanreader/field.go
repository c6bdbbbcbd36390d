// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// field reads an attribute.
type field func(*reader, pcommon.Value)

// fields holds the attributes that are read: those below, and the contributing numbers.
var fields = func() map[string]field {
	all := map[string]field{
		names.Outcome:        (*reader).outcome,
		names.StalledAtEnd:   func(r *reader, v pcommon.Value) { r.request.Latency.StalledAtEnd = v.Bool() },
		names.Cut:            func(r *reader, v pcommon.Value) { r.request.Cut = v.Str() == names.CutCollector },
		names.Repeated:       func(r *reader, _ pcommon.Value) { r.repeated = true },
		names.Aggregated:     func(r *reader, v pcommon.Value) { r.aggregated = v.Bool() },
		names.Vantage:        func(r *reader, v pcommon.Value) { r.request.Vantage = labelValue(v) },
		names.SLOMet:         func(r *reader, v pcommon.Value) { r.judged[slo.Good] = optional.Of(v) },
		names.SLOBreached:    func(r *reader, v pcommon.Value) { r.judged[slo.Bad] = optional.Of(v) },
		names.SLONotEligible: func(r *reader, v pcommon.Value) { r.judged[slo.NotEligible] = optional.Of(v) },
		names.SLOOfTrace:     func(r *reader, v pcommon.Value) { r.ofTrace = optional.Of(v) },
		names.Unmeasured:     (*reader).unmeasured,

		numbers.InterTokenLatency.Attribute(): func(r *reader, v pcommon.Value) { r.sketch(numbers.InterTokenLatency, v) },
		numbers.InterChunkLatency.Attribute(): func(r *reader, v pcommon.Value) { r.sketch(numbers.InterChunkLatency, v) },
		numbers.TokensPerChunk.Attribute():    func(r *reader, v pcommon.Value) { r.sketch(numbers.TokensPerChunk, v) },
		numbers.InterAudioLatency.Attribute(): func(r *reader, v pcommon.Value) { r.sketch(numbers.InterAudioLatency, v) },
	}
	for _, id := range series.Contributing {
		all[id.Attribute()] = func(r *reader, v pcommon.Value) { r.number(id, v) }
	}
	return all
}()
