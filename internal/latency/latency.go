package latency

import "time"

// Quantity is a number that a request has once, or not at all.
type Quantity uint8

// The quantities of definitions.md, in seconds unless noted.
const (
	RequestDuration Quantity = iota
	TimeToFirstToken
	TimeToFirstOutputToken
	TimePerOutputToken
	QueueDuration
	PrefillDuration
	DecodeDuration
	DecodeShare      // 0..1
	OutputTokenRate  // tokens per second
	RequestTokenRate // tokens per second
	StallDuration
	FluidityIndex // 0..1
	Quantities    // how many there are
)

// Measure is the value of a quantity. One that is not Known is absent, which is
// not the same as 0. An Estimated one is an estimate or a bound.
type Measure struct {
	Value            float64
	Known, Estimated bool
}

// Statistic is one number that sums up the gaps of a request.
type Statistic uint8

// The statistics that a request has of its gaps.
const (
	Mean Statistic = iota
	P50
	P95
	P99
	Max
	Statistics // how many there are
)

// Distribution sums up the gaps of one request, in seconds. Of gaps that were
// seen, Mean and Max are exact, and the percentiles within 0.55%.
type Distribution [Statistics]Measure

// Reason tells why a value was rejected.
type Reason uint8

// The reasons: a value is never moved into the range it should be in.
const (
	Negative Reason = iota
	LongerThanRequest
	Reasons // how many there are
)

func (r Reason) String() string {
	return [Reasons]string{"negative", "longer_than_request"}[r]
}

// Latency is what a request's timings mean.
type Latency struct {
	// Outcome is one of the values of names.Outcome.
	Outcome  string
	Measures [Quantities]Measure
	// InterToken holds one sample per token after the first chunk, InterChunk one
	// per chunk after the first.
	InterToken, InterChunk Distribution
	// StallCount belongs to the measure StallDuration: known and estimated like it.
	StallCount int64
	// ChunkCount is the number of chunks that carried a token, dropped ones
	// included. It is unknown when nobody watched them.
	ChunkCount Optional[int64]
	// TokenCount is the number of output tokens that the chunks held, at least one
	// for each dropped. It is unknown where there was no chunk, and where the
	// number was reported: that counts.
	TokenCount Optional[int64]
	// TokenCountMismatch is the reported number of output tokens minus the counted.
	// It is 0 where there was nothing to compare.
	TokenCountMismatch int64
	// ClockAnomalies counts the steps back in start, first chunk, ..., last chunk,
	// end.
	ClockAnomalies int64
	// Rejected counts values outside [0, request duration], by reason.
	Rejected [Reasons]int64
}

// accepts reports whether a duration is inside [0, limit], and counts the one
// that is not.
func (l *Latency) accepts(v, limit time.Duration) bool {
	switch {
	case v < 0:
		l.Rejected[Negative]++
	case v > limit:
		l.Rejected[LongerThanRequest]++
	default:
		return true
	}
	return false
}

const nanosPerSecond = 1e9

// seconds rounds once, so that 20 ms is the float64 nearest to 0.02.
func seconds(d time.Duration) float64 { return float64(d) / nanosPerSecond }
