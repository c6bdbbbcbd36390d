// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Settings are settings of the processor.
type Settings struct {
	StallThreshold  int64 // nanoseconds, as are the deadlines
	AfterFirstChunk bool  // tpot_denominator: after_first_chunk
	// Deadlines of the fluidity index. A first one of zero disables it.
	FirstToken, NextToken int64
}

// Usual are the default settings.
var Usual = Settings{StallThreshold: second / 2}

// Answer holds the numbers of a stream by definition.
type Answer struct {
	Outcome string
	Numbers map[string]Number // by attribute; missing numbers have no key
	// InterToken and InterChunk hold all samples, in seconds, and ChunkTokens the tokens of each chunk.
	InterToken, InterChunk []Number
	ChunkTokens            []Number
	OutputTokens           int64 // N
	Buffered, StalledAtEnd bool
	Estimated              []string
	Unmeasured             []string
}

// Of computes the numbers of a stream.
func Of(s *Stream, settings Settings) Answer {
	c := computation{
		Answer: Answer{Outcome: s.Outcome(), Numbers: map[string]Number{}},
		stream: s, settings: settings, chunks: s.Arrivals(), end: s.LastTime(),
	}
	c.duration, c.blur = c.end-s.Start, blurOf(c.chunks)
	c.putDuration("tokenpulse.request.duration", c.duration, 0)
	c.put("tokenpulse.chunk.count", float64(len(c.chunks)), 0)
	c.putUnlessZero("tokenpulse.clock.anomalies", stepsBack(s.Start, c.chunks, c.end))
	c.countTokens()
	c.queued = s.Scheduled != 0 && c.putDuration("tokenpulse.queue.duration", s.Scheduled-s.Start, 0)
	if len(c.chunks) > 0 {
		c.first, c.last = c.chunks[0], c.chunks[len(c.chunks)-1]
		c.timeFirstTokens()
		c.timePhases()
		c.findBuffering()
		c.timeGaps()
		c.timePositions()
		c.countStalls()
		c.pace()
		c.countDeadlines()
	}
	c.nameUnmeasured()
	return c.Answer
}

// computation is an answer in progress.
type computation struct {
	Answer
	stream          *Stream
	settings        Settings
	chunks          []Chunk
	first, last     Chunk
	end, duration   int64
	blur            float64 // tolerance of a gap, in seconds
	queued, decoded bool    // the queue and the decode are known
}

func (c *computation) put(name string, value, within float64) {
	c.Numbers[name] = Number{value, within}
}

func (c *computation) putUnlessZero(name string, n int) {
	if n != 0 {
		c.put(name, float64(n), 0)
	}
}

// putDuration leaves out a duration outside of the request's, and reports whether it did not.
func (c *computation) putDuration(name string, nanoseconds int64, within float64) bool {
	if !c.plausible(nanoseconds) {
		return false
	}
	c.put(name, seconds(nanoseconds, 1), within)
	return true
}

func (c *computation) plausible(nanoseconds int64) bool {
	return 0 <= nanoseconds && nanoseconds <= c.duration
}

func (c *computation) countTokens() {
	usage, counted := c.stream.Usage, countedTokens(c.chunks)
	for _, chunk := range c.chunks {
		c.ChunkTokens = append(c.ChunkTokens, Number{Value: float64(chunk.Tokens)})
	}
	c.OutputTokens = counted
	switch {
	case usage.Output >= 0:
		c.OutputTokens = usage.Output
		if usage.Reasoning > usage.Output { // which excludes it then
			c.OutputTokens += usage.Reasoning
		}
		if len(c.chunks) > 0 {
			c.putUnlessZero("tokenpulse.token_count.mismatch", int(c.OutputTokens-counted))
		}
	case counted > 0:
		c.put("tokenpulse.token_count", float64(counted), 0)
	}
	if c.duration > 0 {
		c.put("tokenpulse.request_token_rate", float64(c.OutputTokens)/seconds(c.duration, 1), 0)
	}
	if usage.Input > 0 && 0 <= usage.CachedInput && usage.CachedInput <= usage.Input {
		c.put("tokenpulse.cached_input.share", float64(usage.CachedInput)/float64(usage.Input), 0)
	}
}

func (c *computation) timeFirstTokens() {
	c.putDuration("tokenpulse.time_to_first_token", c.first.At-c.stream.Start, 0)
	output := slices.IndexFunc(c.chunks, func(chunk Chunk) bool { return chunk.Channel != Reasoning })
	if output < 0 {
		return
	}
	within := c.blur
	if c.chunks[output].At == c.first.At {
		within = 0
	}
	c.putDuration("tokenpulse.time_to_first_output_token", c.chunks[output].At-c.stream.Start, within)
}

func (c *computation) timePhases() {
	from := c.stream.Start
	if c.queued {
		from = c.stream.Scheduled
	}
	prefilled := c.putDuration("tokenpulse.prefill.duration", c.first.At-from, 0)
	if prefilled && !c.queued {
		c.Estimated = append(c.Estimated, "prefill.duration")
	}
	if usage := c.stream.Usage; prefilled && c.queued && c.first.At > from && usage.CachedInput >= 0 && usage.Input > usage.CachedInput {
		c.put("tokenpulse.prefill_token_rate", float64(usage.Input-usage.CachedInput)/seconds(c.first.At-from, 1), 0)
	}
	c.decoded = c.putDuration("tokenpulse.decode.duration", c.last.At-c.first.At, c.blur)
	if both := c.last.At - from; prefilled && c.decoded && both > 0 {
		c.put("tokenpulse.decode.share", float64(c.last.At-c.first.At)/float64(both), c.blur/seconds(both, 1))
		if !c.queued {
			c.Estimated = append(c.Estimated, "decode.share")
		}
	}
}

func (c *computation) findBuffering() {
	decode := (c.last.At - c.first.At) / microsecond * microsecond // as the Collector keeps it
	c.Buffered = c.decoded && c.OutputTokens >= 16 &&
		100*decode <= c.last.At-c.stream.Start && decode < (c.OutputTokens-1)*second/1000
}

// timeGaps makes each gap a sample, and each token a sample of an equal part of its gap.
func (c *computation) timeGaps() {
	for i, chunk := range c.chunks[1:] {
		gap := chunk.At - c.chunks[i].At
		if c.Buffered || !c.plausible(gap) {
			continue
		}
		c.InterChunk = append(c.InterChunk, Number{seconds(gap, 1), c.blur})
		for range chunk.Tokens {
			c.InterToken = append(c.InterToken, Number{seconds(gap, chunk.Tokens), c.blur / float64(chunk.Tokens)})
		}
	}
	c.summarize("tokenpulse.inter_token_latency", c.InterToken)
	c.summarize("tokenpulse.inter_chunk_latency", c.InterChunk)
}

// timePositions visits one token after the other. The position of a token is the number of tokens before it.
func (c *computation) timePositions() {
	waits := map[string][]float64{}
	position := c.chunks[0].Tokens
	for i, chunk := range c.chunks[1:] {
		gap := chunk.At - c.chunks[i].At
		for range chunk.Tokens {
			from := "0"
			switch {
			case position >= 1000:
				from = "1000"
			case position >= 100:
				from = "100"
			case position >= 10:
				from = "10"
			}
			if c.plausible(gap) && !c.Buffered {
				waits[from] = append(waits[from], seconds(gap, chunk.Tokens))
			}
			position++
		}
	}
	for from, all := range waits {
		c.put("tokenpulse.time_per_token.from_"+from, Mean(all), c.blur+rounded)
	}
}

func (c *computation) summarize(name string, samples []Number) {
	if len(samples) == 0 {
		return
	}
	values := Values(samples)
	c.put(name+".mean", Mean(values), c.blur+rounded)
	c.put(name+".max", slices.Max(values), c.blur+rounded)
	for suffix, q := range map[string]float64{".p50": 0.50, ".p95": 0.95, ".p99": 0.99} {
		exact := NearestRank(values, q)
		c.put(name+suffix, exact, exact*SketchError+c.blur+rounded)
	}
}

// countStalls tolerates gaps that the Collector's resolution may shift over the threshold.
func (c *computation) countStalls() {
	var gaps []int64
	for i, chunk := range c.chunks[1:] {
		gaps = append(gaps, chunk.At-c.chunks[i].At)
	}
	if c.Outcome == names.OutcomeCancelled && c.last.At >= c.stream.Start {
		waited := c.end - c.last.At
		gaps = append(gaps, waited)
		c.StalledAtEnd = waited > c.settings.StallThreshold && c.plausible(waited)
	}
	var stalls, stalled, doubtful, doubted int64
	for _, gap := range gaps {
		if !c.plausible(gap) {
			continue
		}
		over := gap - c.settings.StallThreshold
		if over > 0 {
			stalls++
			stalled += gap
		}
		if c.blur > 0 && -microsecond < over && over <= microsecond {
			doubtful++
			doubted += gap
		}
	}
	within := c.blur*float64(stalls+doubtful) + seconds(doubted, 1)
	if stalls+doubtful > 0 && c.putDuration("tokenpulse.stall.duration", stalled, within) {
		c.put("tokenpulse.stall.count", float64(stalls), float64(doubtful))
	}
}

// pace computes the time per output token and its inverse.
func (c *computation) pace() {
	if len(c.chunks) == 1 || c.OutputTokens <= 1 || !c.decoded || c.Buffered {
		return
	}
	share, decode := c.OutputTokens-1, c.last.At-c.first.At
	if c.settings.AfterFirstChunk && c.first.Tokens < c.OutputTokens {
		share = c.OutputTokens - c.first.Tokens
	}
	c.put("tokenpulse.time_per_output_token", seconds(decode, share), c.blur/float64(share)+rounded)
	if decode > 0 {
		rate := float64(second*share) / float64(decode)
		c.put("tokenpulse.output_token_rate", rate, rate*c.blur/(seconds(decode, 1)-c.blur))
	}
}

// countDeadlines visits one token after the other. The tokens of a later chunk divide its gap
// into whole nanoseconds; those of the first chunk arrive at once. Where the Collector rounds
// times, one deadline more or less may be missed, and later ones depend on it: then the
// tolerance is 1, and only the index's presence is checked.
func (c *computation) countDeadlines() {
	first, next := c.first.At-c.stream.Start, c.settings.NextToken
	if c.settings.FirstToken == 0 || !c.plausible(first) {
		return
	}
	var met, missed, slack int64
	if late := first - c.settings.FirstToken; late > 0 {
		missed = 1 + late/next
	} else {
		met, slack = 1, -late
	}
	take := func(wait int64) {
		if wait-slack > next {
			missed += (wait - slack) / next
			slack = 0
		} else {
			met++
			slack += next - wait
		}
	}
	for range c.first.Tokens - 1 {
		take(0)
	}
	for i, chunk := range c.chunks[1:] {
		gap := chunk.At - c.chunks[i].At
		if !c.plausible(gap) {
			continue
		}
		for token := range chunk.Tokens {
			wait := gap / chunk.Tokens
			if token >= chunk.Tokens-gap%chunk.Tokens {
				wait++
			}
			take(wait)
		}
	}
	within := 0.0
	if c.blur > 0 {
		within = 1
	}
	c.put("tokenpulse.fluidity_index", 1-float64(missed)/float64(met+missed), within)
}

// nameUnmeasured lists the missing indicators with the first reason that applies.
func (c *computation) nameUnmeasured() {
	first, pace := "implausible", "one_token"
	switch {
	case len(c.chunks) == 0:
		first, pace = "no_token", "no_token"
	case !c.decoded:
		pace = "implausible"
	case c.Buffered:
		pace = "buffered"
	}
	if _, measured := c.Numbers["tokenpulse.time_to_first_token"]; !measured {
		c.Unmeasured = append(c.Unmeasured, "time_to_first_token="+first)
	}
	if _, measured := c.Numbers["tokenpulse.time_per_output_token"]; !measured {
		c.Unmeasured = append(c.Unmeasured, "time_per_output_token="+pace)
	}
}
