// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Complete checks the numbers of a request that is filled in, and adds those that follow from them.
func (r *Contribution) Complete() {
	r.end()
	r.check()
	r.derive()
	r.distribute()
	r.limit()
}

// end sets how the request ended.
func (r *Contribution) end() {
	if outcome := slices.Index(OutcomeNames[:], r.Latency.Outcome); outcome >= 0 {
		r.Outcome = Outcome(outcome)
	} else if r.Failed {
		r.Outcome = Error
	}
	if cause, failed := slo.CauseOf(OutcomeNames[r.Outcome], r.Status); failed {
		r.Failure = optional.Of(cause)
	}
	r.Verdicts.End(r.ending())
}

// ending returns what the verdict on `all` depends on. A forged stall counts only on a cancelled request.
func (r *Contribution) ending() slo.Ending {
	switch {
	case r.Failure == optional.Of(slo.ClientMistake):
		return slo.Mistaken
	case r.Cut:
		return slo.Cut
	case r.Failure.Known:
		return slo.Failed
	case r.Outcome == Cancelled && r.Latency.StalledAtEnd:
		return slo.Stalled
	default:
		return slo.Finished
	}
}

// check rejects numbers that no request has, and reasons for the absence of an indicator that the request has.
func (r *Contribution) check() {
	for _, id := range Contributing {
		if m := &r.Latency.Measures[id]; m.Known {
			if reason := checkNumber(id, m.Value); reason != Accepted {
				r.Reject(reason)
				*m = latency.Measure{}
			}
		}
	}
	for i := range r.Latency.Absences {
		if reason := &r.Latency.Absences[i]; *reason != latency.Present && r.has(numbers.Indicators[i]) {
			r.Reject(MalformedUnmeasured)
			*reason = latency.Present
		}
	}
}

func (r *Contribution) has(id numbers.ID) bool {
	return r.Latency.Measures[id].Known || id.IsDistribution() && !r.Distribution(id).empty()
}

// derive adds numbers that token_latency does not write. Output tokens fall back to the counted ones if the service
// reported none. The rates are written with `detail: full` only. Zero stalls let the counters of a
// series start with its first stream.
func (r *Contribution) derive() {
	m := &r.Latency.Measures
	if tokens := m[numbers.TokenCount].Value; !m[numbers.OutputTokens].Known && tokens > 0 {
		r.SetValue(numbers.OutputTokens, tokens)
	}
	if perToken := m[numbers.TimePerOutputToken].Value; !m[numbers.OutputTokenRate].Known && perToken*Largest >= 1 {
		r.SetValue(numbers.OutputTokenRate, 1/perToken)
	}
	if duration := m[numbers.RequestDuration].Value; !m[numbers.RequestTokenRate].Known && duration > 0 {
		if tokens, known := r.generated(); known && duration*Largest >= tokens {
			r.SetValue(numbers.RequestTokenRate, tokens/duration)
		}
	}
	if !m[numbers.StallCount].Known && m[numbers.ChunkCount].Value > 1 {
		r.SetValue(numbers.StallCount, 0)
		r.SetValue(numbers.StallDuration, 0)
	}
}

// generated returns N, after OutputTokens fell back to the counted ones. Without either there was no token, or each
// chunk counts as one.
func (r *Contribution) generated() (tokens float64, known bool) {
	m := &r.Latency.Measures
	if output := m[numbers.OutputTokens]; output.Known {
		all := latency.WithReasoning(output.Value, m[numbers.ReasoningTokens].Value)
		return latency.WithoutAudio(all, m[numbers.AudioOutputTokens].Value), true
	}
	return m[numbers.ChunkCount].Value, m[numbers.ChunkCount].Known
}

// distribute completes the distributions. The longest is the only statistic of the gaps that is used. Spans
// have that of the chunks with `detail: full`. The processor then also writes their sketch where it
// differs from that of the tokens: where a chunk after the first held several tokens.
func (r *Contribution) distribute() {
	tokens, chunks := r.Distribution(numbers.InterTokenLatency), r.Distribution(numbers.InterChunkLatency)
	longest, known := r.Value(numbers.InterChunkMax)
	tokens.Values, chunks.Values = r.Latency.TokenGaps, r.Latency.ChunkGaps
	tokens.Max, _ = r.Value(numbers.InterTokenMax)
	if chunks.shared = known && chunks.Values == nil && chunks.Sketch == nil; chunks.shared {
		chunks.Sketch, chunks.Values, longest = tokens.Sketch, tokens.Values, max(longest, tokens.Max)
	}
	chunks.Max = longest
	r.Distribution(numbers.TokensPerChunk).Values = r.Latency.ChunkTokens
	audio := r.Distribution(numbers.InterAudioLatency)
	audio.Values = r.Latency.AudioGaps
	audio.Max, _ = r.Value(numbers.InterAudioMax)
}

// Limits of a request's distributions. The processor rounds gaps to microseconds, and a bucket is
// 1.1% wide.
const (
	gapTolerance = 1.011
	gapRounding  = 10e-6
	// maxTokens limits the tokens of a request without a token count: 16 million.
	maxTokens = 1 << 24
	// maxSpread limits the sum of the gaps in seconds, whatever the span says: the events
	// of a stream lie within 24 hours of its start, before or after.
	maxSpread = 48 * 3600
)

// limit sets what the gaps and the tokens of chunks cannot exceed, so that one forged span does
// not outweigh all others. All gaps lie between the request's start and end, unless the
// processor found clock anomalies: chunks outside the span, or backward steps, after
// which the same time begins again. Each single gap still fits into the span.
func (r *Contribution) limit() {
	longest, most := min(r.Seconds, maxSpread)*gapTolerance+gapRounding, uint64(maxTokens)
	if tokens := r.Latency.Count(numbers.TokenCount); tokens > 0 {
		most = min(most, uint64(tokens))
	}
	r.Gaps = Limits{Largest: longest, Sum: longest, Count: most}
	if r.Latency.Count(numbers.ClockAnomalies) > 0 {
		r.Gaps.Sum = maxSpread * gapTolerance
	}
	r.AudioGaps = Limits{Largest: longest, Sum: r.Gaps.Sum, Count: maxTokens}
	r.ChunkTokens = Limits{Largest: timeline.MaxTokensPerChunk, Sum: float64(most), Count: most}
}
