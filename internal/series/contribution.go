// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"bytes"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Contribution is what one finished request adds to its series. The engine keeps no reference
// to its memory.
type Contribution struct {
	// Dimensions holds the values of the configured dimensions in their order, empty
	// where the request has none. Dimensions and Vantage are clean label values
	// (CleanLabel).
	Dimensions []string
	Vantage    string
	Outcome    Outcome
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

	// Gaps are the limits of the distributions.
	Gaps GapLimits

	values        [numbers.Singles]optional.Value[float64]
	distributions [numbers.Distributions - numbers.Singles]Distribution
	modal         [modalities]float64
	counts        [counts]optional.Value[float64]
}

// Reset begins a new request with the dimensions and attributes of the one before, and the memory of its
// verdicts.
func (r *Contribution) Reset(arrival time.Time) {
	dimensions, standard, verdicts := r.Dimensions, r.Standard, r.Verdicts
	verdicts.Reset()
	*r = Contribution{} // in place, which is faster than to copy a large value
	r.Dimensions, r.Standard, r.Verdicts, r.Arrival = dimensions, standard, verdicts, arrival
}

// CopyLabels sets the dimensions, the vantage and the attributes of conventions to those of another request.
func (r *Contribution) CopyLabels(of *Contribution) {
	copy(r.Dimensions, of.Dimensions)
	r.Vantage, r.Standard = of.Vantage, of.Standard
}

// Distribution is the distribution of one quantity within one request: encoded, if a span
// carried it, or as it was measured. The engine checks both in the same way.
type Distribution struct {
	// Sketch is encoded by package sketch.
	Sketch []byte
	// Values replaces Sketch, unless it is nil.
	Values *sketch.Sketch
	// Max is the largest value, for the exemplar. Without it the request has no exemplar.
	Max float64
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
func (d *Distribution) mergeInto(s *sketch.Sketch, limits *GapLimits, last *parsed) bool {
	if d.Values != nil {
		if !limits.allow(d.Values.Count(), d.Values.Sum(), d.Values.Max()) {
			return false
		}
		s.Merge(d.Values)
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
	return true
}

// GapLimits bounds the gaps between tokens, or chunks, of a request by what else is known
// of it. A distribution beyond them cannot be true. Zero means no limit.
type GapLimits struct {
	// Longest bounds each gap, and Sum their sum, in seconds.
	Longest, Sum float64
	// Count bounds their number.
	Count uint64
}

// maxValues limits the values of one request's distribution: a billion tokens.
const maxValues = sketch.MaxValue

func (l *GapLimits) allow(count uint64, sum, largest float64) bool {
	return count <= maxValues &&
		(l.Count == 0 || count <= l.Count) &&
		(l.Longest == 0 || largest <= l.Longest) &&
		(l.Sum == 0 || sum <= l.Sum)
}

// SetValue sets a quantity that has one value per request. v must be finite and not
// negative.
func (r *Contribution) SetValue(q numbers.ID, v float64) { r.values[q] = optional.Of(v) }

// Value returns the value of a quantity. ok is false if it was not set.
func (r *Contribution) Value(q numbers.ID) (v float64, ok bool) {
	return r.values[q].Value, r.values[q].Known
}

// SetDistribution sets a quantity that has many values per request: InterTokenLatency
// or InterChunkLatency.
func (r *Contribution) SetDistribution(q numbers.ID, d Distribution) {
	r.distributions[q-numbers.Singles] = d
}

// Distribution returns the distribution of a quantity. It is empty if it was not set.
func (r *Contribution) Distribution(q numbers.ID) *Distribution {
	return &r.distributions[q-numbers.Singles]
}

// The counts of tokens of a modality have these IDs.
const (
	firstModal = numbers.TextInputTokens
	modalities = numbers.AudioCachedInputTokens + 1 - firstModal
)

// SetModal sets a count of the tokens of one modality.
func (r *Contribution) SetModal(id numbers.ID, n float64) { r.modal[id-firstModal] = n }

// SetSum sets what the request adds to a sum of its series, one of numbers.Sums. n must be finite and
// not negative.
func (r *Contribution) SetSum(id numbers.ID, n float64) { r.SetCount(CountOf(id), n) }

// SetCount is SetSum for any sum.
func (r *Contribution) SetCount(c Count, n float64) { r.counts[c] = optional.Of(n) }

// Sum returns what the request adds to a sum, one of numbers.Sums. ok is false if it was not set.
func (r *Contribution) Sum(id numbers.ID) (n float64, ok bool) { return r.Count(CountOf(id)) }

// Count returns what the request adds to a sum. ok is false if it was not set.
func (r *Contribution) Count(c Count) (n float64, ok bool) {
	return r.counts[c].Value, r.counts[c].Known
}
