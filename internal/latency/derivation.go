// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// derivation implements the table "Per request" of definitions.md. Its methods run in
// the order of derive, because later rows of the table depend on earlier ones.
type derivation struct {
	request  *Observed
	limit    time.Duration // upper bound of every duration
	arrivals *arrivals
	audio    *audio
	options  *Options
	latency  *Latency
	// decodeTime is the decode duration from the first token to the last, as observed. It is unknown
	// if only the engine measured its decode.
	decodeTime optional.Value[time.Duration]
	// pace is the decode duration that time per output token is derived from.
	pace Measure
}

func (d *derivation) derive() {
	d.includeReasoning()
	d.leaveOutAudio()
	first := d.firstToken()
	d.setOutcome(first.Known || d.arrivals.chunks > 0 || d.dropped() > 0)
	if !d.request.StartUnknown {
		d.set(numbers.RequestDuration, d.request.Duration, false)
	}
	d.countClockAnomalies(first)
	d.milestones(first)
	d.phases(first)
	d.rejectNegativeTokens()
	d.cachedInput()
	d.prefillRate()
	d.speculation()
	d.detectBuffering(first)
	d.rates()
	d.gaps()
	d.tokensPerChunk()
	d.spoken()
	d.timePerToken()
	d.stalls()
	d.explainAbsences(first)
	if d.options.Moments {
		d.moments(first)
	}
}

// set stores a duration unless it is outside [0, request duration].
func (d *derivation) set(q numbers.ID, v time.Duration, estimated bool) {
	if d.latency.accepts(v, d.limit) {
		d.latency.Measures[q] = Measure{Value: seconds(v), Known: true, Estimated: estimated}
	}
}

// dropped returns how many chunks are missing from the timeline.
func (d *derivation) dropped() int64 {
	return d.request.FirstChunksDropped + d.request.LastChunksDropped
}

// droppedTokens returns how many tokens the dropped chunks had at least. Beside audio, they may all be of audio.
func (d *derivation) droppedTokens() int64 {
	if d.audio.chunks > 0 {
		return 0
	}
	return d.dropped()
}

// partial reports whether the timeline differs from the times of all tokens. What
// depends on the whole timeline is then estimated.
func (d *derivation) partial() bool { return d.request.Frames || d.dropped() > 0 }

// tokensAssumed reports whether the number of tokens is a lower bound.
func (d *derivation) tokensAssumed() bool {
	return d.request.TokensAssumed && !d.request.OutputTokens.Known
}

// firstToken returns c1: from a timeline of tokens, else as reported, else from the
// first frame, unless frames before it were dropped.
func (d *derivation) firstToken() Milestone {
	if d.generatedNothing() {
		return Milestone{}
	}
	if d.arrivals.chunks > 0 && !d.request.Frames {
		return Milestone{d.arrivals.first, true, false}
	}
	for _, reported := range d.request.FirstToken {
		if reported.Known && d.latency.accepts(reported.Offset, d.limit) {
			return reported
		}
		d.request.FirstTokenRejected = d.request.FirstTokenRejected || reported.Known
	}
	if d.arrivals.chunks > 0 && d.request.FirstChunksDropped == 0 {
		return Milestone{d.arrivals.first, true, true}
	}
	return Milestone{}
}

// generatedNothing reports whether the service says that it generated no token, such as for a pooling request: its
// first token is then the end of its work.
func (d *derivation) generatedNothing() bool {
	return d.arrivals.chunks == 0 && d.dropped() == 0 && d.request.OutputTokens.Known && d.request.OutputTokens.Value == 0
}

// includeReasoning makes the output tokens include those of reasoning.
func (d *derivation) includeReasoning() {
	if output, reasoning := &d.request.OutputTokens, d.request.ReasoningTokens; output.Known && output.Value >= 0 && reasoning.Known {
		output.Value = WithReasoning(output.Value, reasoning.Value)
	}
}

// WithReasoning returns the output tokens, those of reasoning included. More reasoning than output proves that a service
// leaves it out.
func WithReasoning[T int64 | float64](output, reasoning T) T {
	if reasoning > output {
		return output + reasoning
	}
	return output
}

// countClockAnomalies counts a first token, or audio, before the start and an end before the last.
// Those in between are counted during the walks.
func (d *derivation) countClockAnomalies(first Milestone) {
	begin, last := first.Offset, first.Offset
	if d.arrivals.chunks > 0 {
		last = d.arrivals.last
	}
	if d.audio.chunks > 0 {
		begin, last = min(begin, d.audio.first), max(last, d.audio.last)
	}
	if begin < 0 {
		d.latency.addClockAnomaly()
	}
	if d.request.Duration < last {
		d.latency.addClockAnomaly()
	}
}

func (d *derivation) milestones(first Milestone) {
	if d.arrivals.chunks > 0 || !first.Known && !d.request.TokensNotObserved {
		d.latency.setCount(numbers.ChunkCount, d.arrivals.chunks+d.droppedTokens())
	}
	if d.request.StartUnknown {
		return
	}
	if first.Known {
		d.set(numbers.TimeToFirstToken, first.Offset, first.Estimated)
	}
	if output := d.arrivals.firstOutput; output.Known && !d.request.Frames {
		d.set(numbers.TimeToFirstOutputToken, output.Value, false)
	}
}

func (d *derivation) phases(first Milestone) {
	if d.request.Transfer.Known {
		d.set(numbers.TransferDuration, d.request.Transfer.Value, false)
	}
	if !d.request.StartUnknown {
		d.queueAndPrefill(first)
	}
	if network := d.request.Network; network.Known {
		d.latency.Measures[numbers.NetworkDuration] = Measure{Value: seconds(network.Value), Known: true}
	}
	d.decode(first)
	prefill, decode := d.latency.Measures[numbers.PrefillDuration], d.latency.Measures[numbers.DecodeDuration]
	if sum := prefill.Value + decode.Value; prefill.Known && decode.Known && sum > 0 {
		d.latency.Measures[numbers.DecodeShare] = Measure{decode.Value / sum, true, prefill.Estimated || decode.Estimated}
	}
}

func (d *derivation) queueAndPrefill(first Milestone) {
	if d.request.Queue.Known {
		d.set(numbers.QueueDuration, d.request.Queue.Value, false)
	}
	if d.request.Prefill.Known {
		d.set(numbers.PrefillDuration, d.request.Prefill.Value, d.request.PrefillEstimated)
		return
	}
	if !first.Known {
		return
	}
	until := first.Offset - d.transferBefore(first)
	if d.latency.Measures[numbers.QueueDuration].Known {
		d.set(numbers.PrefillDuration, until-d.request.Queue.Value, first.Estimated)
	} else { // an upper bound: includes queue and network
		d.set(numbers.PrefillDuration, until, true)
	}
}

// transferBefore returns the part of the time to first token that the KV cache took to arrive. An engine that only
// does prefill sends the cache after its one token.
func (d *derivation) transferBefore(first Milestone) time.Duration {
	prefillOnly := d.request.OutputTokens.Known && d.request.OutputTokens.Value <= 1
	transfer := d.latency.Measures[numbers.TransferDuration].Known
	if wait := first.Offset - d.request.Queue.Value; transfer && !prefillOnly && d.request.Transfer.Value <= wait {
		return d.request.Transfer.Value
	}
	return 0
}

// decode sets the decode duration. What the engine measured has precedence, except for the pace of
// tokens whose arrivals are known.
func (d *derivation) decode(first Milestone) {
	d.observedDecode(first)
	if d.request.Decode.Known && !d.generatedNothing() {
		d.set(numbers.DecodeDuration, d.request.Decode.Value, d.request.DecodeEstimated)
	}
	if !d.pace.Known {
		d.pace = d.latency.Measures[numbers.DecodeDuration]
	}
}

// observedDecode sets the decode duration from the token times. Without the time of the last token, it
// ends with the request.
func (d *derivation) observedDecode(first Milestone) {
	reported := d.request.Decode.Known
	switch {
	case !first.Known:
	case d.arrivals.chunks > 0 && d.request.LastChunksDropped == 0 && (!reported || !d.request.Frames):
		d.setDecode(d.arrivals.last-first.Offset, d.request.Frames)
	case reported:
	case d.request.LastToken.Known:
		d.setDecode(d.request.LastToken.Value-first.Offset, first.Estimated)
	default:
		d.setDecode(d.request.Duration-first.Offset, true)
	}
	d.pace = d.latency.Measures[numbers.DecodeDuration]
}

func (d *derivation) setDecode(v time.Duration, estimated bool) {
	d.set(numbers.DecodeDuration, v, estimated)
	d.decodeTime = optional.Value[time.Duration]{Value: v, Known: d.latency.Measures[numbers.DecodeDuration].Known}
}

func (d *derivation) rejectNegativeTokens() {
	if d.request.OutputTokens.Known && d.request.OutputTokens.Value < 0 {
		d.latency.Rejected[Negative]++
		d.request.OutputTokens.Known = false
	}
}

// cachedInput sets the share of the input tokens that came from a cache. It stays unknown for services that do
// not count the cached tokens among the input tokens.
func (d *derivation) cachedInput() {
	input, cached := d.request.InputTokens, d.request.CachedInputTokens
	if input.Known && cached.Known && input.Value > 0 && 0 <= cached.Value && cached.Value <= input.Value {
		d.latency.Measures[numbers.CachedInputShare] = Measure{Value: float64(cached.Value) / float64(input.Value), Known: true}
	}
}

// prefillRate sets the rate at which the engine read the tokens of the prompt that were not cached. An estimated prefill
// includes a wait or the network, so its rate would not be that of the engine.
func (d *derivation) prefillRate() {
	prefill, cached := d.latency.Measures[numbers.PrefillDuration], d.latency.Measures[numbers.CachedInputShare]
	read := d.request.InputTokens.Value - d.request.CachedInputTokens.Value
	if cached.Known && read > 0 && prefill.Known && !prefill.Estimated && prefill.Value > 0 {
		d.latency.Measures[numbers.PrefillTokenRate] = Measure{Value: float64(read) / prefill.Value, Known: true}
	}
}

// speculation sets the counts of speculative decoding, if they are plausible.
func (d *derivation) speculation() {
	accepted, draft := d.request.AcceptedTokens, d.request.DraftTokens
	if accepted.Known && draft.Known && 0 <= accepted.Value && accepted.Value <= draft.Value {
		d.latency.Measures[numbers.SpeculativeAcceptedTokens] = Measure{Value: float64(accepted.Value), Known: true}
		d.latency.Measures[numbers.SpeculativeDraftTokens] = Measure{Value: float64(draft.Value), Known: true}
	}
}

// outputTokens returns N. It is estimated if frames were counted, if the tokens of chunks were not, or
// if chunks were dropped, each of which counts as one token unless it may be audio.
func (d *derivation) outputTokens() (n int64, known, estimated bool) {
	if reported := d.request.OutputTokens; reported.Known {
		return reported.Value, true, false
	}
	return d.arrivals.tokens + d.droppedTokens(), d.latency.Measures[numbers.ChunkCount].Known, d.partial() || d.request.TokensAssumed
}

func (d *derivation) rates() {
	if d.request.OutputTokens.Known && d.arrivals.chunks > 0 && d.dropped() == 0 {
		d.latency.setCount(numbers.TokenCountMismatch, d.request.OutputTokens.Value-d.arrivals.tokens)
	}
	tokens, known, estimated := d.outputTokens()
	if !known {
		return
	}
	if !d.request.OutputTokens.Known && !d.request.Frames && tokens > 0 {
		d.latency.Measures[numbers.TokenCount] = Measure{float64(tokens), true, d.tokensAssumed()}
	}
	if duration := d.latency.Measures[numbers.RequestDuration]; duration.Value > 0 {
		d.latency.Measures[numbers.RequestTokenRate] = Measure{float64(tokens) / duration.Value, true, estimated}
	}
	if !d.atMostOneChunk() {
		d.decodePace(tokens, estimated)
	}
}

func (d *derivation) atMostOneChunk() bool {
	chunks := d.latency.Measures[numbers.ChunkCount]
	return chunks.Known && chunks.Value <= 1
}

// decodePace derives time per output token and its inverse.
func (d *derivation) decodePace(tokens int64, estimated bool) {
	decode := d.pace
	if !decode.Known || tokens <= max(1, d.request.Choices) || d.latency.Buffered {
		return
	}
	estimated = estimated || decode.Estimated
	if d.request.Choices > 1 {
		d.setPace(decode.Value/(float64(tokens)/float64(d.request.Choices)-1), true)
		return
	}
	// Dividing whole nanoseconds rounds once: 50 ms per token is 0.05, not the next
	// larger float64, which would breach a threshold of 50 ms.
	perToken := math.Round(decode.Value*nanosPerSecond) / (nanosPerSecond * float64(d.denominator(tokens)))
	d.setPace(perToken, estimated)
}

func (d *derivation) setPace(perToken float64, estimated bool) {
	d.latency.Measures[numbers.TimePerOutputToken] = Measure{perToken, true, estimated}
	if perToken > 0 {
		d.latency.Measures[numbers.OutputTokenRate] = Measure{1 / perToken, true, estimated}
	}
}

func (d *derivation) denominator(tokens int64) int64 {
	first := d.arrivals.firstTokens
	if d.options.Denominator == AfterFirstChunk && !d.request.Frames && 0 < first && first < tokens {
		return tokens - first
	}
	return tokens - 1
}

// gaps sets what is derived from the gaps between chunks. With chunks dropped, it
// covers only a part of the stream.
func (d *derivation) gaps() {
	gaps := &d.arrivals.gaps
	if d.latency.Buffered {
		gaps.reset()
		d.request.ReportedGaps = ReportedGaps{}
	}
	if d.arrivals.chunks == 0 {
		d.latency.setGaps(numbers.InterTokenMean, d.plausible(d.request.ReportedGaps.InterToken))
		d.latency.setGaps(numbers.InterChunkMean, d.plausible(d.request.ReportedGaps.InterChunk))
		return
	}
	estimated, percentiles := d.partial() || d.tokensAssumed(), d.options.percentiles()
	tokens := gaps.summarize(&gaps.interToken, estimated, percentiles)
	chunks := tokens
	if gaps.bundled || estimated != d.partial() {
		chunks = gaps.summarize(gaps.betweenChunks(), d.partial(), percentiles)
	}
	d.latency.setGaps(numbers.InterTokenMean, tokens)
	d.latency.setGaps(numbers.InterChunkMean, chunks)
	if d.arrivals.fluidity.started && !d.request.StartUnknown && d.request.FirstChunksDropped == 0 {
		d.latency.Measures[numbers.FluidityIndex] = Measure{d.arrivals.fluidity.index(), true, estimated}
	}
}

// stalls sets the gaps longer than the threshold. The wait at the end is one, too, if the client gave up during it.
// A user who interrupts did not give up. Other requests end for reasons such as an idle timeout, which say nothing
// about the pace of the tokens.
func (d *derivation) stalls() {
	count, total := d.arrivals.stalls, d.arrivals.stallTime
	if from, known := d.waitedFrom(); known && d.latency.Outcome == names.OutcomeCancelled && !d.request.Interrupted {
		if wait := d.request.Duration - from; wait > d.options.StallThreshold {
			d.latency.StalledAtEnd = true
			count, total = count+1, min(total, math.MaxInt64-wait)+wait
		}
	}
	if d.arrivals.chunks <= 1 && !d.latency.StalledAtEnd {
		return
	}
	// Gaps are rounded to ticks, so stalls that span the whole request may exceed it by
	// part of a tick.
	if over := total - d.limit; 0 < over && over < timeline.Tick && d.limit >= 0 {
		total = d.limit
	}
	estimated := d.partial() || d.arrivals.chunks == 0
	if d.set(numbers.StallDuration, total, estimated); d.latency.Measures[numbers.StallDuration].Known {
		d.latency.Measures[numbers.StallCount] = Measure{float64(count), true, estimated}
	}
}

// lastToken returns ck, unless the last chunks were dropped.
func (d *derivation) lastToken() (ck time.Duration, known bool) {
	ck, known = d.request.LastToken.Value, d.request.LastToken.Known
	if d.arrivals.chunks > 0 {
		ck, known = d.arrivals.last, d.request.LastChunksDropped == 0
	}
	return ck, known && ck >= 0
}

// waitedFrom returns when the wait at the end began: at the last token, or at a later chunk of audio.
func (d *derivation) waitedFrom() (from time.Duration, known bool) {
	from, known = d.lastToken()
	if d.audio.chunks > 0 {
		from = max(from, d.audio.last)
	}
	return from, known
}

// plausible returns the reported statistics without those outside [0, request
// duration]. They are floats, not whole nanoseconds, and are compared as floats.
func (d *derivation) plausible(reported Distribution) Distribution {
	for statistic, m := range reported {
		switch {
		case !m.Known:
			continue
		case m.Value < 0:
			d.latency.Rejected[Negative]++
		case m.Value > seconds(d.limit):
			d.latency.Rejected[LongerThanRequest]++
		default:
			continue
		}
		reported[statistic] = Measure{}
	}
	return reported
}
