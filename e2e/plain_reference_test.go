// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// plainChunk is one chunk as its sender reports it.
type plainChunk struct {
	at       int64 // Unix nanoseconds
	tokens   int64
	channel  string
	seq      uint64
	numbered bool // the chunk has a seq
}

// plainStream is one stream as its sender reports it. A time of zero and a negative
// count are not reported.
type plainStream struct {
	id                                        string
	vantage                                   string
	start, scheduled, end                     int64
	chunks                                    []plainChunk // in the order in which they are sent
	input, output, reasoning, cached, written int64
	failure                                   string
	cancelled                                 bool
	noEnd                                     bool
}

// plainSettings are settings of the processor.
type plainSettings struct {
	stallThreshold  int64 // nanoseconds, as are the deadlines
	afterFirstChunk bool  // tpot_denominator: after_first_chunk
	firstToken      int64 // deadline of the fluidity index; zero disables it
	nextToken       int64
}

// plainNumber is a number and the tolerance of the Collector's number. The Collector
// truncates the time of each chunk but the first to a microsecond.
type plainNumber struct{ value, within float64 }

// rounded is the tolerance of a quotient in seconds, which the Collector writes in whole
// nanoseconds. Other durations are differences of whole nanoseconds.
const rounded = 0.5e-9

// plainAnswer holds the numbers of a stream by definition. Absent numbers have no key.
type plainAnswer struct {
	outcome string
	numbers map[string]plainNumber // by attribute
	// interToken and interChunk hold all samples, in seconds.
	interToken, interChunk []plainNumber
	outputTokens           int64 // N
	buffered               bool
	estimated              []string
}

// unmeasured lists the missing indicators with the reasons.
func (a *plainAnswer) unmeasured() (entries []string) {
	_, hasFirst := a.numbers["tokenpulse.time_to_first_token"]
	_, hasPace := a.numbers["tokenpulse.time_per_output_token"]
	_, decoded := a.numbers["tokenpulse.decode.duration"]
	none := a.numbers["tokenpulse.chunk.count"].value == 0
	switch {
	case hasFirst:
	case none:
		entries = append(entries, "time_to_first_token=no_token")
	default:
		entries = append(entries, "time_to_first_token=implausible")
	}
	switch {
	case hasPace:
	case none:
		entries = append(entries, "time_per_output_token=no_token")
	case !decoded:
		entries = append(entries, "time_per_output_token=implausible")
	case a.buffered:
		entries = append(entries, "time_per_output_token=buffered")
	default:
		entries = append(entries, "time_per_output_token=one_token")
	}
	return entries
}

const microsecond = 1000 // in nanoseconds

// seconds rounds once, to the float64 nearest to the quotient.
func seconds(nanoseconds, share int64) float64 {
	return float64(nanoseconds) / float64(1_000_000_000*share)
}

// plainly computes docs/definitions.md on plain slices: it keeps every chunk, makes
// every gap a sample, and visits every token for the fluidity index.
func plainly(s *plainStream, settings plainSettings) plainAnswer {
	chunks := s.arrivals()
	answer := plainAnswer{outcome: s.outcome(len(chunks)), numbers: map[string]plainNumber{}}
	end := s.lastKnown(chunks)
	duration := end - s.start
	put := func(name string, nanoseconds int64, within float64) bool {
		if nanoseconds < 0 || nanoseconds > duration {
			return false
		}
		answer.numbers[name] = plainNumber{seconds(nanoseconds, 1), within}
		return true
	}
	count := func(name string, n int) { answer.numbers[name] = plainNumber{value: float64(n)} }

	put("tokenpulse.request.duration", duration, 0)
	count("tokenpulse.chunk.count", len(chunks))
	if back := stepsBack(s.start, chunks, end); back > 0 {
		count("tokenpulse.clock.anomalies", back)
	}
	queued := s.scheduled != 0 && put("tokenpulse.queue.duration", s.scheduled-s.start, 0)

	if s.input > 0 && 0 <= s.cached && s.cached <= s.input {
		answer.numbers["tokenpulse.cached_input.share"] = plainNumber{value: float64(s.cached) / float64(s.input)}
	}
	counted := int64(0)
	for _, c := range chunks {
		counted += c.tokens
	}
	answer.outputTokens = counted
	switch {
	case s.output >= 0 && len(chunks) > 0 && s.output != counted:
		answer.outputTokens = s.output
		count("tokenpulse.token_count.mismatch", int(s.output-counted))
	case s.output >= 0:
		answer.outputTokens = s.output
	case counted > 0:
		count("tokenpulse.token_count", int(counted))
	}
	if duration > 0 {
		answer.numbers["tokenpulse.request_token_rate"] = plainNumber{value: float64(answer.outputTokens) / seconds(duration, 1)}
	}
	if len(chunks) == 0 {
		return answer
	}

	blur := blurOf(chunks)
	first, last := chunks[0], chunks[len(chunks)-1]
	put("tokenpulse.time_to_first_token", first.at-s.start, 0)
	for _, c := range chunks {
		if c.channel != "reasoning" {
			within := blur
			if c.at == first.at {
				within = 0
			}
			put("tokenpulse.time_to_first_output_token", c.at-s.start, within)
			break
		}
	}
	prefill := false
	if queued {
		prefill = put("tokenpulse.prefill.duration", first.at-s.scheduled, 0)
	} else if prefill = put("tokenpulse.prefill.duration", first.at-s.start, 0); prefill {
		answer.estimated = append(answer.estimated, "prefill.duration")
	}
	decoded := put("tokenpulse.decode.duration", last.at-first.at, blur)
	if sum := answer.numbers["tokenpulse.prefill.duration"].value + seconds(last.at-first.at, 1); prefill && decoded && sum > 0 {
		answer.numbers["tokenpulse.decode.share"] = plainNumber{seconds(last.at-first.at, 1) / sum, blur / sum}
		if !queued {
			answer.estimated = append(answer.estimated, "decode.share")
		}
	}
	gaps := []int64{}
	for i, c := range chunks[1:] {
		gaps = append(gaps, c.at-chunks[i].at)
	}
	if answer.outcome == names.OutcomeCancelled && last.at >= s.start {
		gaps = append(gaps, end-last.at) // the client waited for a token
	}
	var stalls, stalled, doubtful, doubted int64
	for _, gap := range gaps {
		if !accepted(gap, duration) {
			continue
		}
		if gap > settings.stallThreshold {
			stalls++
			stalled += gap
		}
		if over := gap - settings.stallThreshold; blur > 0 && -microsecond < over && over <= microsecond {
			doubtful++
			doubted += gap
		}
	}
	if stalls+doubtful > 0 && put("tokenpulse.stall.duration", stalled, blur*float64(stalls+doubtful)+seconds(doubted, 1)) {
		answer.numbers["tokenpulse.stall.count"] = plainNumber{float64(stalls), float64(doubtful)}
	}
	if total := last.at - s.start; decoded && answer.outputTokens >= 16 {
		decode := (last.at - first.at) / microsecond * microsecond // as the Collector keeps it
		answer.buffered = 100*decode <= total && decode < (answer.outputTokens-1)*1_000_000
	}
	if len(chunks) == 1 {
		answer.fluidity(settings, first.at-s.start, duration, chunks)
		return answer
	}
	if n := answer.outputTokens; n > 1 && decoded && !answer.buffered {
		share := n - 1
		if settings.afterFirstChunk && first.tokens < n {
			share = n - first.tokens
		}
		answer.pace(last.at-first.at, share, blur)
	}

	for i, c := range chunks[1:] {
		gap := c.at - chunks[i].at
		if !accepted(gap, duration) {
			continue
		}
		answer.interChunk = append(answer.interChunk, plainNumber{seconds(gap, 1), blur})
		for range c.tokens {
			answer.interToken = append(answer.interToken, plainNumber{seconds(gap, c.tokens), blur / float64(c.tokens)})
		}
	}
	if answer.buffered {
		answer.interToken, answer.interChunk = nil, nil
	}
	answer.sumUp("tokenpulse.inter_token_latency", answer.interToken, blur)
	answer.sumUp("tokenpulse.inter_chunk_latency", answer.interChunk, blur)
	answer.fluidity(settings, first.at-s.start, duration, chunks)
	return answer
}

// arrivals returns the chunks with tokens in order, without repeats: by sequence number
// if all have one, else by time.
func (s *plainStream) arrivals() []plainChunk {
	var chunks []plainChunk
	all, seen := true, map[uint64]bool{}
	for _, c := range s.chunks {
		if c.tokens == 0 || c.numbered && seen[c.seq] {
			continue
		}
		all = all && c.numbered
		if c.numbered {
			seen[c.seq] = true
		}
		chunks = append(chunks, c)
	}
	slices.SortStableFunc(chunks, func(a, b plainChunk) int {
		if all {
			return cmp.Compare(a.seq, b.seq)
		}
		return cmp.Compare(a.at, b.at)
	})
	return chunks
}

// lastKnown returns the reported end, or else the last reported time of the stream.
func (s *plainStream) lastKnown(chunks []plainChunk) int64 {
	if s.end != 0 && !s.noEnd {
		return s.end
	}
	last := max(s.start, s.scheduled)
	for _, c := range chunks {
		last = max(last, c.at)
	}
	return last
}

func (s *plainStream) outcome(chunks int) string {
	switch {
	case s.noEnd:
		return names.OutcomeIncomplete
	case s.failure != "":
		return names.OutcomeError
	case s.cancelled:
		return names.OutcomeCancelled
	case chunks == 0:
		return names.OutcomeError
	default:
		return names.OutcomeSuccess
	}
}

// stepsBack counts how often the clock steps back between start and end.
func stepsBack(start int64, chunks []plainChunk, end int64) int {
	times := []int64{start}
	for _, c := range chunks {
		times = append(times, c.at)
	}
	times = append(times, end)
	back := 0
	for i := range times[1:] {
		if times[i+1] < times[i] {
			back++
		}
	}
	return back
}

// blurOf returns the tolerance of a gap, in seconds.
func blurOf(chunks []plainChunk) float64 {
	for _, c := range chunks {
		if c.at%microsecond != 0 {
			return 1e-6
		}
	}
	return 0
}

func (a *plainAnswer) pace(decode, share int64, blur float64) {
	a.numbers["tokenpulse.time_per_output_token"] = plainNumber{seconds(decode, share), blur/float64(share) + rounded}
	if decode > 0 {
		rate := float64(1_000_000_000*share) / float64(decode)
		a.numbers["tokenpulse.output_token_rate"] = plainNumber{rate, rate * blur / (seconds(decode, 1) - blur)}
	}
}

// sketchError is the largest relative error of a percentile by docs/definitions.md.
const sketchError = 0.0055

func (a *plainAnswer) sumUp(name string, samples []plainNumber, blur float64) {
	if len(samples) == 0 {
		return
	}
	values := plainValues(samples)
	a.numbers[name+".mean"] = plainNumber{mean(values), blur + rounded}
	a.numbers[name+".max"] = plainNumber{slices.Max(values), blur + rounded}
	for suffix, q := range map[string]float64{".p50": 0.50, ".p95": 0.95, ".p99": 0.99} {
		exact := nearestRank(values, q)
		a.numbers[name+suffix] = plainNumber{exact, exact*sketchError + blur + rounded}
	}
}

// plainValues returns the sorted values.
func plainValues(samples []plainNumber) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = s.value
	}
	slices.Sort(values)
	return values
}

// accepted reports whether a gap is plausible.
func accepted(gap, duration int64) bool { return 0 <= gap && gap <= duration }

// fluidity visits one token after the other. The tokens of a later chunk divide its gap
// into whole nanoseconds; those of the first chunk arrive at once. Where the Collector
// truncates times, one deadline more or less may be missed, and later ones depend on
// it: then the tolerance is 1, and only the index's presence is checked.
func (a *plainAnswer) fluidity(settings plainSettings, first, duration int64, chunks []plainChunk) {
	if settings.firstToken == 0 || first < 0 || first > duration {
		return
	}
	var met, missed, slack int64
	if late := first - settings.firstToken; late > 0 {
		missed = 1 + late/settings.nextToken
	} else {
		met, slack = 1, -late
	}
	take := func(wait int64) {
		if wait-slack > settings.nextToken {
			missed += (wait - slack) / settings.nextToken
			slack = 0
		} else {
			met++
			slack += settings.nextToken - wait
		}
	}
	for range chunks[0].tokens - 1 {
		take(0)
	}
	for i, c := range chunks[1:] {
		gap := c.at - chunks[i].at
		if !accepted(gap, duration) {
			continue
		}
		for token := range c.tokens {
			wait := gap / c.tokens
			if token >= c.tokens-gap%c.tokens {
				wait++
			}
			take(wait)
		}
	}
	within := 0.0
	if blurOf(chunks) > 0 {
		within = 1
	}
	a.numbers["tokenpulse.fluidity_index"] = plainNumber{1 - float64(missed)/float64(met+missed), within}
}
