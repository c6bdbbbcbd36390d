package latency

import "time"

// derivation is the table "Per request" of definitions.md, a method for each few
// rows. Its methods run in the order of derive: later rows read earlier ones.
type derivation struct {
	request  *Request
	limit    time.Duration // of every duration
	arrivals *arrivals
	options  *Options
	latency  *Latency
}

func (d *derivation) derive() {
	first := d.firstToken()
	d.latency.Outcome = outcome(d.request, first.Known || d.request.ChunksDropped > 0)
	d.set(RequestDuration, d.request.Duration, false)
	d.clockAtBothEnds(first)
	d.milestones(first)
	d.phases(first)
	d.rates()
	d.gaps()
}

// set stores a duration unless it is outside [0, request duration].
func (d *derivation) set(q Quantity, v time.Duration, estimated bool) {
	if d.latency.accepts(v, d.limit) {
		d.latency.Measures[q] = Measure{Value: seconds(v), Known: true, Estimated: estimated}
	}
}

// firstToken returns c1.
func (d *derivation) firstToken() Optional[time.Duration] {
	if d.arrivals.chunks > 0 {
		return Known(d.arrivals.first)
	}
	return d.request.FirstToken
}

// lastTokenUnknown reports that nobody saw the last token. Decode then ends with
// the request.
func (d *derivation) lastTokenUnknown() bool {
	return d.arrivals.chunks == 0 || d.request.ChunksDropped > 0
}

// clockAtBothEnds adds the steps back before the first and after the last token
// to those in between, which the walk has counted.
func (d *derivation) clockAtBothEnds(first Optional[time.Duration]) {
	last := first.Value
	if d.arrivals.chunks > 0 {
		last = d.arrivals.last
	}
	if first.Value < 0 {
		d.latency.ClockAnomalies++
	}
	if d.request.Duration < last {
		d.latency.ClockAnomalies++
	}
}

func (d *derivation) milestones(first Optional[time.Duration]) {
	if first.Known {
		d.set(TimeToFirstToken, first.Value, false)
	}
	if output := d.arrivals.firstOutput; output.Known {
		d.set(TimeToFirstOutputToken, output.Value, false)
	}
	if d.arrivals.chunks > 0 || !first.Known {
		d.latency.ChunkCount = Known(d.arrivals.chunks + d.request.ChunksDropped)
	}
}

func (d *derivation) phases(first Optional[time.Duration]) {
	if d.request.Queue.Known {
		d.set(QueueDuration, d.request.Queue.Value, false)
	}
	if !first.Known {
		return
	}
	if d.latency.Measures[QueueDuration].Known {
		d.set(PrefillDuration, first.Value-d.request.Queue.Value, false)
	} else { // an upper bound: it holds queue and network
		d.set(PrefillDuration, first.Value, true)
	}
	last := d.arrivals.last
	if d.lastTokenUnknown() {
		last = d.request.Duration
	}
	d.set(DecodeDuration, last-first.Value, d.lastTokenUnknown())

	prefill, decode := d.latency.Measures[PrefillDuration], d.latency.Measures[DecodeDuration]
	if sum := prefill.Value + decode.Value; prefill.Known && decode.Known && sum > 0 {
		d.latency.Measures[DecodeShare] = Measure{decode.Value / sum, true, prefill.Estimated || decode.Estimated}
	}
}

// outputTokens returns N. It is a lower bound when chunks that nobody counted
// are missing, each of which held at least one token.
func (d *derivation) outputTokens() (n int64, known, lowerBound bool) {
	if reported := d.request.OutputTokens; reported.Known {
		return reported.Value, true, false
	}
	dropped := d.request.ChunksDropped
	return d.arrivals.tokens + dropped, d.latency.ChunkCount.Known, dropped > 0
}

func (d *derivation) rates() {
	if d.request.OutputTokens.Known && d.request.OutputTokens.Value < 0 {
		d.latency.Rejected[Negative]++
		d.request.OutputTokens.Known = false
	}
	if d.request.OutputTokens.Known && d.arrivals.chunks > 0 && d.request.ChunksDropped == 0 {
		d.latency.TokenCountMismatch = d.request.OutputTokens.Value - d.arrivals.tokens
	}
	tokens, known, lowerBound := d.outputTokens()
	if !known {
		return
	}
	if !d.request.OutputTokens.Known && tokens > 0 {
		d.latency.TokenCount = Known(tokens)
	}
	if duration := d.latency.Measures[RequestDuration]; duration.Value > 0 {
		d.latency.Measures[RequestTokenRate] = Measure{float64(tokens) / duration.Value, true, lowerBound}
	}
	if d.latency.ChunkCount.Known && d.latency.ChunkCount.Value <= 1 {
		return
	}
	d.decodePace(tokens)
}

// decodePace derives time per output token and its inverse.
func (d *derivation) decodePace(tokens int64) {
	decode := d.latency.Measures[DecodeDuration]
	if !decode.Known || tokens <= 1 {
		return
	}
	perToken := decode.Value / float64(d.denominator(tokens))
	d.latency.Measures[TimePerOutputToken] = Measure{perToken, true, decode.Estimated}
	if perToken > 0 {
		d.latency.Measures[OutputTokenRate] = Measure{1 / perToken, true, decode.Estimated}
	}
}

func (d *derivation) denominator(tokens int64) int64 {
	first := d.arrivals.firstTokens
	if d.options.Denominator == AfterFirstChunk && 0 < first && first < tokens {
		return tokens - first
	}
	return tokens - 1
}

// gaps sums up what lies between the chunks. With chunks missing it speaks of
// part of the stream only.
func (d *derivation) gaps() {
	gaps, partial := &d.arrivals.gaps, d.request.ChunksDropped > 0
	d.latency.InterToken = gaps.sumUp(&gaps.interToken, partial)
	d.latency.InterChunk = d.latency.InterToken
	if gaps.differ {
		d.latency.InterChunk = gaps.sumUp(&gaps.interChunk, partial)
	}
	if d.arrivals.chunks > 1 {
		d.latency.StallCount = d.arrivals.stalls
		d.set(StallDuration, d.arrivals.stallTime, partial)
	}
	if d.arrivals.fluidity.started {
		d.latency.Measures[FluidityIndex] = Measure{d.arrivals.fluidity.index(), true, partial}
	}
}
