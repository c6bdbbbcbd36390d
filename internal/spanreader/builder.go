// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Builder makes a series.Contribution of one finished request after the other: call Begin, fill in Finished,
// then call End. It is not safe for concurrent use.
type Builder struct {
	// Request is complete after End.
	Request series.Contribution
	// Rejected counts the values of the request that were left out.
	Rejected [series.Reasons]int64

	Finished

	objectives slo.Names
	bands      []bandsOfNumber
}

// Finished is a finished request.
type Finished struct {
	// Latency has its numbers. Of its gaps, a span has an encoded form.
	latency.Latency
	EncodedTokenGaps, EncodedChunkGaps []byte
	// Cut means that the Collector itself ended the request, Failed that its status is an error.
	Cut, Failed bool
	// Status is the HTTP status of its answer if it failed, 0 if that is unknown.
	Status int
	// Seconds is the time from its start to its end.
	Seconds float64

	ownChunkGaps bool // a span has an attribute for them, which may be malformed

	failed bool
	cause  slo.Cause // if it failed
}

// sketches returns the number of distributions that the request has.
func (f *Finished) sketches() (n int) {
	for _, has := range [...]bool{f.TokenGaps != nil, f.ChunkGaps != nil, f.EncodedTokenGaps != nil, f.EncodedChunkGaps != nil} {
		if has {
			n++
		}
	}
	return n
}

// NewBuilder returns a builder of requests with dimensions. It keeps the
// verdicts on SLOs of objectives, and on slo.MaxSLOs others.
func NewBuilder(dimensions Dimensions, objectives slo.Names) Builder {
	return Builder{
		Request: series.Contribution{Dimensions: make([]string, len(dimensions.names))}, objectives: objectives, bands: dimensions.numbers,
	}
}

// HasBands reports whether End sets a dimension.
func (b *Builder) HasBands() bool { return len(b.bands) > 0 }

// Begin begins a request. The values of its dimensions are those of the request before.
func (b *Builder) Begin(now time.Time) {
	b.Request.Reset(now)
	b.Finished, b.Rejected = Finished{}, [series.Reasons]int64{}
}

// Reject counts a value that is left out.
func (b *Builder) Reject(reason series.Reason) { b.Rejected[reason]++ }

// HasObjective reports whether an SLO has an objective.
func (b *Builder) HasObjective(slo string) bool { return b.objectives[slo] }

// AddVerdict adds the verdict of an SLO, whose name is a clean label value.
func (b *Builder) AddVerdict(slo string, verdict slo.Verdict) {
	if b.objectives[slo] {
		b.Request.Verdicts.AddReserved(slo, verdict)
	} else {
		b.Request.Verdicts.Add(slo, verdict)
	}
}

// End completes the request. It sets the dimensions that are bands of its numbers.
func (b *Builder) End() {
	b.endWith()
	b.check()
	for _, id := range numbers.Histograms {
		if id < numbers.Singles && b.Measures[id].Known {
			b.Request.SetValue(id, b.Measures[id].Value)
		}
	}
	for _, id := range numbers.Sums {
		if m := b.Measures[id]; m.Known {
			b.Request.SetSum(id, m.Value)
		}
	}
	for _, id := range numbers.Usage {
		if m := b.Measures[id]; m.Known && id.Row().Modality != "" {
			b.Request.SetModal(id, m.Value)
		}
	}
	b.deriveOutputTokens()
	b.deriveOutputTokenRate()
	b.deriveStalls()
	b.setBands()
	b.countUnmeasured()
	b.countFailed()
	b.distribute()
	b.limitGaps()
}

// endWith sets the outcome, and how the request ended.
func (b *Builder) endWith() {
	if outcome := slices.Index(series.OutcomeNames[:], b.Outcome); outcome >= 0 {
		b.Request.Outcome = series.Outcome(outcome)
	} else if b.Failed {
		b.Request.Outcome = series.Error
	}
	b.cause, b.failed = slo.CauseOf(series.OutcomeNames[b.Request.Outcome], b.Status)
	b.Request.Verdicts.End(b.ending())
}

// check rejects numbers that no request has.
func (b *Builder) check() {
	for _, id := range series.Contributing {
		if m := &b.Measures[id]; m.Known {
			if reason := series.Check(id, m.Value); reason != series.Accepted {
				b.Reject(reason)
				*m = latency.Measure{}
			}
		}
	}
}

// ending returns how the request ended. A forged stall counts only on a cancelled request.
func (b *Builder) ending() slo.Ending {
	switch {
	case b.failed && b.cause == slo.ClientMistake:
		return slo.Mistaken
	case b.Cut:
		return slo.Cut
	case b.failed:
		return slo.Failed
	case b.Request.Outcome == series.Cancelled && b.StalledAtEnd:
		return slo.Stalled
	default:
		return slo.Finished
	}
}

// deriveOutputTokens falls back to the counted tokens if the service reported no usage.
func (b *Builder) deriveOutputTokens() {
	if tokens := b.Measures[numbers.TokenCount].Value; !b.Measures[numbers.OutputTokens].Known && tokens > 0 {
		b.Request.SetSum(numbers.OutputTokens, tokens)
	}
}

// deriveOutputTokenRate falls back to the definition of the rate. The processor writes the
// rate with `detail: full` only.
func (b *Builder) deriveOutputTokenRate() {
	if perToken := b.Measures[numbers.TimePerOutputToken].Value; !b.Measures[numbers.OutputTokenRate].Known && perToken*series.Largest >= 1 {
		b.Request.SetValue(numbers.OutputTokenRate, 1/perToken)
	}
}

// deriveStalls adds zero stalls, which the processor does not write, so that the counters
// of a series start with its first stream.
func (b *Builder) deriveStalls() {
	if !b.Measures[numbers.StallCount].Known && b.Measures[numbers.ChunkCount].Value > 1 {
		b.Request.SetSum(numbers.StallCount, 0)
		b.Request.SetSum(numbers.StallDuration, 0)
	}
}

// countUnmeasured counts the missing indicators. It rejects a reason for one that the request has.
func (b *Builder) countUnmeasured() {
	for i, reason := range b.Absences {
		switch {
		case reason == latency.Present:
		case b.Measures[numbers.Indicators[i]].Known:
			b.Reject(series.MalformedUnmeasured)
		default:
			b.Request.SetCount(series.Unmeasured(i, int(reason)-1), 1)
		}
	}
}

// countFailed counts a failed request by its cause.
func (b *Builder) countFailed() {
	if b.failed && !b.Request.TraceOnly {
		b.Request.SetCount(series.Failed(b.cause), 1)
	}
}

// distribute sets the distributions. The longest is the only statistic of the gaps that is used. Spans
// have that of the chunks with `detail: full`. The processor then also writes their sketch where it
// differs from that of the tokens: where a chunk after the first held several tokens.
func (b *Builder) distribute() {
	tokens := series.Distribution{Sketch: b.EncodedTokenGaps, Values: b.TokenGaps, Max: b.Measures[numbers.InterTokenMax].Value}
	chunks := series.Distribution{Sketch: b.EncodedChunkGaps, Values: b.ChunkGaps, Max: b.Measures[numbers.InterChunkMax].Value}
	if chunks.Values == nil && !b.ownChunkGaps && b.Measures[numbers.InterChunkMax].Known {
		chunks.Sketch, chunks.Values, chunks.Max = tokens.Sketch, tokens.Values, max(chunks.Max, tokens.Max)
	}
	b.Request.SetDistribution(numbers.InterTokenLatency, tokens)
	b.Request.SetDistribution(numbers.InterChunkLatency, chunks)
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
func (b *Builder) limitGaps() {
	longest := min(b.Seconds, maxSpread)*gapTolerance + gapRounding
	b.Request.Gaps = series.GapLimits{Longest: longest, Sum: longest, Count: maxGaps}
	if b.Count(numbers.ClockAnomalies) > 0 {
		b.Request.Gaps.Sum = maxSpread * gapTolerance
	}
	if tokens := b.Count(numbers.TokenCount); tokens > 0 {
		b.Request.Gaps.Count = min(maxGaps, uint64(tokens))
	}
}
