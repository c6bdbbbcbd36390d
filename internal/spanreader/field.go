// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// field is an attribute that the reader reads.
type field struct {
	name string
	kind kind
	// which is the series.Quantity, series.Count or slo.Verdict of the attribute.
	which uint8
}

type kind uint8

const (
	isOutcome kind = iota
	isVantage
	isVerdicts
	isValue
	isCount
	isStallDuration
	isTokenCount
	isClockAnomalies
	isTokenSketch
	isChunkSketch
	isLongestTokenGap
	isLongestChunkGap
)

var fields = [...]field{
	{names.Outcome, isOutcome, 0},
	{names.Vantage, isVantage, 0},
	{names.SLOMet, isVerdicts, uint8(slo.Good)},
	{names.SLOBreached, isVerdicts, uint8(slo.Bad)},
	{names.SLONotEligible, isVerdicts, uint8(slo.NotEligible)},

	{names.TimeToFirstToken, isValue, uint8(series.TimeToFirstToken)},
	{names.TimeToFirstOutputToken, isValue, uint8(series.TimeToFirstOutputToken)},
	{names.TimePerOutputToken, isValue, uint8(series.TimePerOutputToken)},
	{names.RequestDuration, isValue, uint8(series.RequestDuration)},
	{names.QueueDuration, isValue, uint8(series.QueueDuration)},
	{names.PrefillDuration, isValue, uint8(series.PrefillDuration)},
	{names.DecodeDuration, isValue, uint8(series.DecodeDuration)},
	{names.OutputTokenRate, isValue, uint8(series.OutputTokenRate)},

	{names.GenAIInputTokens, isCount, uint8(series.InputTokens)},
	{names.GenAIOutputTokens, isCount, uint8(series.OutputTokens)},
	{names.GenAIReasoningTokens, isCount, uint8(series.ReasoningTokens)},
	{names.GenAICacheReadInputTokens, isCount, uint8(series.CachedInputTokens)},
	{names.StallCount, isCount, uint8(series.Stalls)},
	{names.StallDuration, isStallDuration, 0},
	{names.TokenCount, isTokenCount, 0},
	{names.ClockAnomalies, isClockAnomalies, 0},

	{names.InterTokenLatencySketch, isTokenSketch, 0},
	{names.InterChunkLatencySketch, isChunkSketch, 0},
	{names.InterTokenLatency + names.SuffixMax, isLongestTokenGap, 0},
	{names.InterChunkLatency + names.SuffixMax, isLongestChunkGap, 0},
}

// table finds fields by name. A span has about 35 attributes, most of them not ours,
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
