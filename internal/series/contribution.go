// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"bytes"
	"cmp"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Contribution is a finished request on the way to its series. To reuse its memory, call Reset, fill it in,
// then call Complete. The engine keeps no reference to its memory.
type Contribution struct {
	// Dimensions holds the values of the configured dimensions in their order, empty
	// where the request has none. Dimensions and Vantage are clean label values
	// (names.CleanLabel).
	Dimensions []string
	Vantage    string
	// Standard holds the values of the attributes that conventions.Config.AttributesRead names, empty where the
	// request has none. They are clean label values, too.
	Standard []string
	// TraceOnly is set for a trace's root span that is no request itself: it has
	// TimeToAnswer and verdicts, and is not counted as a request.
	TraceOnly bool

	// Arrival is the time at which the Collector received the request. Windows follow
	// it, whatever the clocks of the senders say.
	Arrival time.Time
	// Client is the sender of the request, for Options.MaxSeriesPerClient. Nil if it is unknown.
	Client *httpguard.Client
	// TraceID and SpanID make the request an exemplar, unless TraceID is zero.
	TraceID [16]byte
	SpanID  [8]byte
	// Trace is the request's trace, if it is known, also where the request makes no exemplar.
	Trace [16]byte
	// Verdicts are those of the SLOs that apply to the request.
	Verdicts slo.VerdictSet

	// Latency has the numbers of the request.
	Latency latency.Latency
	// Cut means that the Collector itself ended the request, Failed that its status is an error.
	Cut, Failed bool
	// Status is the HTTP status of its answer if it failed, 0 if that is unknown.
	Status int
	// Seconds is the time from its start to its end.
	Seconds float64

	// Complete sets Outcome, Failure, Gaps and ChunkTokens.

	Outcome Outcome
	// Failure is the cause of a failed request.
	Failure optional.Value[slo.Cause]
	// Gaps are the limits of the gaps between tokens, or chunks, ChunkTokens those of the tokens of chunks, and AudioGaps those
	// of the gaps between chunks of audio.
	Gaps, ChunkTokens, AudioGaps Limits
	// Rejected counts the values that were left out.
	Rejected [Reasons]int64

	distributions [numbers.Distributions - numbers.Singles]Distribution
}

// Reset begins a new request with the dimensions and attributes of the one before, and the memory of its
// verdicts.
func (r *Contribution) Reset(arrival time.Time) {
	dimensions, standard, verdicts := r.Dimensions, r.Standard, r.Verdicts
	verdicts.Reset()
	*r = Contribution{} // in place, which is faster than to copy a large value
	r.Dimensions, r.Standard, r.Verdicts, r.Arrival = dimensions, standard, verdicts, arrival
}

// KeepTrace drops all numbers but that of the trace, for the root span of a trace whose request another span counts.
func (r *Contribution) KeepTrace() {
	answer := r.Latency.Measures[numbers.TimeToAnswer]
	r.Latency, r.distributions, r.TraceOnly = latency.Latency{Outcome: r.Latency.Outcome}, [len(r.distributions)]Distribution{}, true
	r.Latency.Measures[numbers.TimeToAnswer] = answer
}

// AppendKey appends the key of the request's series.
func (r *Contribution) AppendKey(key []byte) []byte {
	of := Labels{Dimensions: r.Dimensions, Vantage: r.Vantage}
	return of.AppendKey(key)
}

// Reject counts a value that is left out.
func (r *Contribution) Reject(reason Reason) { r.Rejected[reason]++ }

// SetValue sets a number that has one value per request. v must be finite and not
// negative.
func (r *Contribution) SetValue(id numbers.ID, v float64) {
	r.Latency.Measures[id] = latency.Measure{Value: v, Known: true}
}

// Value returns a number that has one value per request. ok is false if it is missing.
func (r *Contribution) Value(id numbers.ID) (v float64, ok bool) {
	m := &r.Latency.Measures[id]
	return m.Value, m.Known
}

// Sums calls yield with what the request adds to each sum of its series.
func (r *Contribution) Sums(yield func(Count, float64) bool) {
	for _, id := range numbers.Sums {
		if m := &r.Latency.Measures[id]; m.Known && !yield(countOf[id], m.Value) {
			return
		}
	}
	for i, reason := range r.Latency.Absences {
		if reason != latency.Present && !yield(Unmeasured(i, int(reason)-1), 1) {
			return
		}
	}
	if r.Failure.Known && !r.TraceOnly {
		yield(Failed(r.Failure.Value), 1)
	}
}

// Distribution returns one of the distributions of numbers, to read it or to fill it in.
func (r *Contribution) Distribution(id numbers.ID) *Distribution {
	return &r.distributions[id-numbers.Singles]
}

// Distribution is the distribution of one quantity within one request: encoded, if a span
// carried it, or as it was measured. The engine checks both in the same way.
type Distribution struct {
	// Sketch is encoded by package sketch. It is empty but not nil if it is malformed.
	Sketch []byte
	// Values replaces Sketch, unless it is nil.
	Values *sketch.Sketch
	// Max is the largest value, for the exemplar. If it is 0, mergeInto sets it to that of the values.
	Max float64

	// shared means that the chunks of the request have the distribution of its tokens.
	shared bool
}

func (d *Distribution) empty() bool {
	if d.Values != nil {
		return d.Values.Count() == 0
	}
	return len(d.Sketch) == 0
}

// parsed is the last encoded sketch, which several distributions of a request may share.
type parsed struct {
	encoded []byte
	values  sketch.Encoded
	err     error
}

// mergeInto adds the values to a sketch. It returns false if they are malformed or exceed the limits.
func (d *Distribution) mergeInto(s *sketch.Sketch, limits *Limits, last *parsed) bool {
	if d.Values != nil {
		if !limits.allow(d.Values.Count(), d.Values.Sum(), d.Values.Max()) {
			return false
		}
		s.Merge(d.Values)
		d.Max = cmp.Or(d.Max, d.Values.Max())
		return true
	}
	if !bytes.Equal(d.Sketch, last.encoded) {
		last.encoded = d.Sketch
		last.values, last.err = sketch.Parse(last.encoded)
	}
	if last.err != nil || !limits.allow(last.values.Count(), last.values.Sum(), last.values.Max()) {
		return false
	}
	s.MergeEncoded(&last.values)
	d.Max = cmp.Or(d.Max, last.values.Max())
	return true
}

// limitsOf returns the limits of a distribution.
func (r *Contribution) limitsOf(id numbers.ID) *Limits {
	switch id {
	case numbers.TokensPerChunk:
		return &r.ChunkTokens
	case numbers.InterAudioLatency:
		return &r.AudioGaps
	default:
		return &r.Gaps
	}
}

// Largest returns the largest value of a distribution, also before the request is recorded. It is 0 without values, and if
// they are malformed or exceed the limits.
func (r *Contribution) Largest(id numbers.ID) float64 {
	d := r.Distribution(id)
	if d.Max > 0 || d.empty() {
		return d.Max
	}
	var values sketch.Sketch
	of := *d
	if !of.mergeInto(&values, r.limitsOf(id), &parsed{}) {
		return 0
	}
	return values.Max()
}

// Limits bounds a distribution of a request by what else is known of it. One beyond them cannot be true. Zero means
// no limit.
type Limits struct {
	// Largest bounds each value, and Sum their sum: seconds or tokens.
	Largest, Sum float64
	// Count bounds their number.
	Count uint64
}

// maxValues limits the values of one request's distribution: a billion tokens.
const maxValues = sketch.MaxValue

func (l *Limits) allow(count uint64, sum, largest float64) bool {
	return count <= maxValues &&
		(l.Count == 0 || count <= l.Count) &&
		(l.Largest == 0 || largest <= l.Largest) &&
		(l.Sum == 0 || sum <= l.Sum)
}
