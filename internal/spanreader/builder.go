// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Builder builds one request after the other: call Begin, set the known values, then call End. It
// is not safe for concurrent use.
type Builder struct {
	// Request is complete after End.
	Request series.Request
	// Rejected counts the values of the request that were left out.
	Rejected [Reasons]int64

	Known

	objectives slo.Names
}

// Known is what is known of a request, besides its values and verdicts.
type Known struct {
	OutcomeKnown       bool
	StalledAtEnd, Cut  bool
	TokenCount         float64
	ChunkCount         float64
	ClockAnomalies     float64
	TokenGaps          series.Distribution
	ChunkGaps          series.Distribution
	Sketches           int  // number of sketches that the request has
	OwnChunkGaps       bool // ChunkGaps has a sketch
	ChunkGapsLikeToken bool // without a sketch, the chunk gaps equal the token gaps
	// Absent holds the reason for each of numbers.Indicators that the request lacks: an index of
	// names.UnmeasuredReasons.
	Absent [len(numbers.Indicators)]optional.Value[int]
}

// NewBuilder returns a builder of requests with the given number of dimensions. It keeps the
// verdicts on SLOs of objectives, and on slo.MaxSLOs others.
func NewBuilder(dimensions int, objectives slo.Names) Builder {
	return Builder{Request: series.Request{Dimensions: make([]string, dimensions)}, objectives: objectives}
}

// Begin begins a request. The values of its dimensions are those of the request before.
func (b *Builder) Begin(now time.Time) {
	b.Request.Reset(now)
	b.Known, b.Rejected = Known{}, [Reasons]int64{}
}

// Reject counts a value that is left out.
func (b *Builder) Reject(reason Reason) { b.Rejected[reason]++ }

// accepts reports whether a number is plausible, and counts one that is not.
func (b *Builder) accepts(n float64) bool {
	reason := Check(n)
	if reason != Accepted {
		b.Reject(reason)
	}
	return reason == Accepted
}

// SetValue sets a quantity.
func (b *Builder) SetValue(q numbers.ID, n float64) {
	if b.accepts(n) {
		b.Request.SetValue(q, n)
	}
}

// SetSum sets what the request adds to a sum.
func (b *Builder) SetSum(id numbers.ID, n float64) {
	if b.accepts(n) {
		b.Request.SetSum(id, n)
	}
}

// HasObjective reports whether an SLO has an objective.
func (b *Builder) HasObjective(slo string) bool { return b.objectives[slo] }

// SetNumber sets one of the numbers of the builder, such as TokenCount.
func (b *Builder) SetNumber(into *float64, n float64) {
	if b.accepts(n) {
		*into = n
	}
}

// AddVerdict adds the verdict of an SLO, whose name is a clean label value.
func (b *Builder) AddVerdict(slo string, verdict slo.Verdict) {
	if b.objectives[slo] {
		b.Request.Verdicts.AddReserved(slo, verdict)
	} else {
		b.Request.Verdicts.Add(slo, verdict)
	}
}

// End completes the request. failed means that its status is an error, seconds is the time
// from its start to its end.
func (b *Builder) End(failed bool, seconds float64) {
	if !b.OutcomeKnown && failed {
		b.Request.Outcome = series.Error
	}
	b.Request.Verdicts.End(b.ending())
	b.deriveOutputTokens()
	b.deriveOutputTokenRate()
	b.deriveStalls()
	b.countUnmeasured()
	b.distribute()
	b.limitGaps(seconds)
}

// ending returns how the request ended. A forged stall counts only on a cancelled request.
func (b *Builder) ending() slo.Ending {
	switch outcome := b.Request.Outcome; {
	case b.Cut:
		return slo.Cut
	case outcome == series.Error, outcome == series.Incomplete, outcome == series.Cancelled && b.StalledAtEnd:
		return slo.Failed
	default:
		return slo.Finished
	}
}

// deriveOutputTokens falls back to the counted tokens if the service reported no usage.
func (b *Builder) deriveOutputTokens() {
	if _, reported := b.Request.Sum(numbers.OutputTokens); !reported && b.TokenCount > 0 {
		b.Request.SetSum(numbers.OutputTokens, b.TokenCount)
	}
}

// deriveOutputTokenRate falls back to the definition of the rate. The processor writes the
// rate with `detail: full` only.
func (b *Builder) deriveOutputTokenRate() {
	perToken, _ := b.Request.Value(numbers.TimePerOutputToken)
	if _, written := b.Request.Value(numbers.OutputTokenRate); !written && perToken*Largest >= 1 {
		b.Request.SetValue(numbers.OutputTokenRate, 1/perToken)
	}
}

// deriveStalls adds zero stalls, which the processor does not write, so that the counters
// of a series start with its first stream.
func (b *Builder) deriveStalls() {
	if _, stalled := b.Request.Sum(numbers.StallCount); !stalled && b.ChunkCount > 1 {
		b.Request.SetSum(numbers.StallCount, 0)
		b.Request.SetSum(numbers.StallDuration, 0)
	}
}

// countUnmeasured counts the missing indicators. It rejects a reason for one that the request has.
func (b *Builder) countUnmeasured() {
	for i, reason := range b.Absent {
		if !reason.Known {
			continue
		}
		if _, measured := b.Request.Value(numbers.Indicators[i]); measured {
			b.Reject(MalformedUnmeasured)
			continue
		}
		b.Request.SetCount(series.Unmeasured(i, reason.Value), 1)
	}
}

// distribute sets the distributions.
func (b *Builder) distribute() {
	if !b.OwnChunkGaps && b.ChunkGapsLikeToken {
		b.ChunkGaps.Sketch, b.ChunkGaps.Values = b.TokenGaps.Sketch, b.TokenGaps.Values
		b.ChunkGaps.Max = max(b.ChunkGaps.Max, b.TokenGaps.Max)
	}
	b.Request.SetDistribution(numbers.InterTokenLatency, b.TokenGaps)
	b.Request.SetDistribution(numbers.InterChunkLatency, b.ChunkGaps)
}

// Limits of a request's gaps. The processor rounds gaps to microseconds, and a bucket is
// 1.1% wide.
const (
	gapTolerance = 1.011
	gapRounding  = 10e-6
	// maxGaps limits the gaps of a request without a token count: 16 million tokens.
	maxGaps = 1 << 24
	// maxSpread limits the sum of the gaps in seconds, whatever the span says: the events
	// of a stream lie within 24 hours of its start, before or after.
	maxSpread = 48 * 3600
)

// limitGaps sets what the gaps of the request cannot exceed, so that one forged span does
// not outweigh all others. All gaps lie between the request's start and end, unless the
// processor found clock anomalies: chunks outside the span, or backward steps, after
// which the same time begins again. Each single gap still fits into the span.
func (b *Builder) limitGaps(seconds float64) {
	longest := min(seconds, maxSpread)*gapTolerance + gapRounding
	b.Request.Gaps = series.GapLimits{Longest: longest, Sum: longest, Count: maxGaps}
	if b.ClockAnomalies > 0 {
		b.Request.Gaps.Sum = maxSpread * gapTolerance
	}
	if b.TokenCount > 0 {
		b.Request.Gaps.Count = min(maxGaps, uint64(b.TokenCount))
	}
}
