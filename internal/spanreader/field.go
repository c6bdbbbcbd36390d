package spanreader

import (
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// field is an attribute that the reader takes, and what it holds.
type field struct {
	name string
	kind kind
	// which quantity, count or verdict it is, where a kind has several.
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
	isTokenSketch
	isChunkSketch
	isLongestTokenGap
	isLongestChunkGap
)

// judges tells whether the attribute says what kind of request it was, or what
// objectives say of it. The others hold numbers and distributions.
func (f *field) judges() bool { return f.kind <= isVerdicts }

var fields = [...]field{
	{names.Outcome, isOutcome, 0},
	{names.Vantage, isVantage, 0},
	{names.SLOMet, isVerdicts, uint8(series.Good)},
	{names.SLOBreached, isVerdicts, uint8(series.Bad)},
	{names.SLONotEligible, isVerdicts, uint8(series.NotEligible)},

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

	{names.InterTokenLatencySketch, isTokenSketch, 0},
	{names.InterChunkLatencySketch, isChunkSketch, 0},
	{names.InterTokenLatency + names.SuffixMax, isLongestTokenGap, 0},
	{names.InterChunkLatency + names.SuffixMax, isLongestChunkGap, 0},
}

// table finds fields by name. A span has some 35 attributes, most of them none of
// ours, so that finding out is much of what a span costs: here it takes three bytes
// of the name, and mostly no comparison. An entry is one more than a position in
// fields, or 0; of two names that want one entry, the second has the next.
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

// entry is where the search for a name begins.
func entry(name string) uint8 {
	last := len(name) - 1
	return uint8(len(name))*7 + name[last]*5 + name[last/2]*3
}

// fieldOf returns the field of a name, or nil.
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
