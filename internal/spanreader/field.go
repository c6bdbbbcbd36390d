// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// field is an attribute that the reader reads, and how.
type field struct {
	name string
	read func(*reader, pcommon.Value)
}

var fields = [...]field{
	{names.Outcome, (*reader).outcome},
	{names.StalledAtEnd, func(r *reader, v pcommon.Value) { r.StalledAtEnd = v.Bool() }},
	{names.Cut, func(r *reader, v pcommon.Value) { r.Cut = v.Str() == names.CutCollector }},
	{names.Aggregated, func(r *reader, v pcommon.Value) { r.aggregated = v.Bool() }},
	{names.Vantage, func(r *reader, v pcommon.Value) { r.Request.Vantage = labelValue(v) }},
	{names.SLOMet, func(r *reader, v pcommon.Value) { r.judged[slo.Good] = optional.Of(v) }},
	{names.SLOBreached, func(r *reader, v pcommon.Value) { r.judged[slo.Bad] = optional.Of(v) }},
	{names.SLONotEligible, func(r *reader, v pcommon.Value) { r.judged[slo.NotEligible] = optional.Of(v) }},
	{names.SLOOfTrace, func(r *reader, v pcommon.Value) { r.ofTrace = optional.Of(v) }},

	{names.Unmeasured, (*reader).unmeasured},

	{names.TimeToFirstToken, value(series.TimeToFirstToken)},
	{names.TimeToFirstOutputToken, value(series.TimeToFirstOutputToken)},
	{names.TimePerOutputToken, value(series.TimePerOutputToken)},
	{names.RequestDuration, value(series.RequestDuration)},
	{names.QueueDuration, value(series.QueueDuration)},
	{names.PrefillDuration, value(series.PrefillDuration)},
	{names.DecodeDuration, value(series.DecodeDuration)},
	{names.NetworkDuration, value(series.NetworkDuration)},
	{names.OutputTokenRate, value(series.OutputTokenRate)},
	{names.TraceTimeToAnswer, (*reader).timeToAnswer},

	{names.GenAIInputTokens, count(series.InputTokens, wholeNumber)},
	{names.GenAIOutputTokens, count(series.OutputTokens, wholeNumber)},
	{names.GenAIReasoningTokens, count(series.ReasoningTokens, wholeNumber)},
	{names.GenAICacheReadInputTokens, count(series.CachedInputTokens, wholeNumber)},
	{names.StallCount, count(series.Stalls, wholeNumber)},
	{names.StallDuration, count(series.StallSeconds, number)},
	{names.TokenCount, func(r *reader, v pcommon.Value) { r.wholeNumber(&r.TokenCount, v) }},
	{names.ChunkCount, func(r *reader, v pcommon.Value) { r.wholeNumber(&r.ChunkCount, v) }},
	{names.ClockAnomalies, func(r *reader, v pcommon.Value) { r.wholeNumber(&r.ClockAnomalies, v) }},

	{names.InterTokenLatencySketch, func(r *reader, v pcommon.Value) { r.sketch(&r.TokenGaps, v) }},
	{names.InterChunkLatencySketch, (*reader).chunkSketch},
	{names.InterTokenLatency + names.SuffixMax, func(r *reader, v pcommon.Value) { r.number(&r.TokenGaps.Max, v) }},
	{names.InterChunkLatency + names.SuffixMax, (*reader).longestChunkGap},
}

// table finds fields by name. A span has about 30 attributes, many of them not ours,
// so lookups are a large part of the cost of a span: this one reads three bytes of the
// name and rarely compares. An entry is the index in fields plus one, or 0. Of two names
// with the same entry, the second takes the next free one.
var table = func() (t [256]uint8) {
	for i := range fields {
		at := entry(fields[i].name)
		for t[at] != 0 {
			at++
		}
		t[at] = uint8(i + 1)
	}
	return t
}()

// entry returns the table entry at which the search for a name starts.
func entry(name string) uint8 {
	last := len(name) - 1
	return uint8(len(name))*7 + name[last]*5 + name[last/2]*3
}

// fieldOf returns the field of an attribute, or nil.
func fieldOf(name string) *field {
	if name == "" {
		return nil
	}
	for at := entry(name); table[at] != 0; at++ {
		if f := &fields[table[at]-1]; f.name == name {
			return f
		}
	}
	return nil
}
