// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package metricreader

// Reason is why a data point was ignored.
type Reason uint8

// The reasons.
const (
	accepted Reason = iota
	// Foreign is a metric that package publish does not send.
	Foreign
	// WrongType is a metric of ours as another type, such as an explicit-bucket histogram, or
	// a sum that can decrease.
	WrongType
	// WrongScale is an exponential histogram with buckets of other bounds.
	WrongScale
	// UnknownTemporality is neither cumulative nor delta.
	UnknownTemporality
	// UnknownLabel is an attribute with an unknown value, or a missing one, such as an
	// outcome.
	UnknownLabel
	// NoStart is a data point without a start time, which distinguishes producers.
	NoStart
	// NoValue is a data point with the flag that no value was recorded.
	NoValue
	// Malformed is a number that is negative, NaN, too large, or a fraction of a request, and
	// a histogram that contradicts itself.
	Malformed
	// Repeated is a data point that is not newer than the last of its stream.
	Repeated
	// BeganBefore is the first data point of a cumulative stream that began before this
	// reader. What it adds to an earlier one is unknown.
	BeganBefore
	// Limit is a new stream beyond the limit.
	Limit
	// OwnObjectives is a gauge of a producer's objectives, while the exporter has its own.
	OwnObjectives

	// Reasons is the number of reasons.
	Reasons
)

// ReasonNames holds the value of the self-metric label `reason` of each Reason.
var ReasonNames = [Reasons]string{
	"", "foreign", "wrong_type", "wrong_scale", "unknown_temporality", "unknown_label", "no_start", "no_value",
	"malformed", "repeated", "began_before", "limit", "own_objectives",
}
