// Package latency turns what was observed of one request to a language model
// into its latency: definitions.md as pure functions. It walks the request's
// timeline once, and allocates nothing once its scratch memory has grown.
package latency

import "time"

// Request is what an instrumentation observed of one request, besides its
// timeline. All times count from the request's start.
type Request struct {
	// Duration is the time from the request's start to its end (E - t0).
	Duration time.Duration
	// StartUnseen tells that the request began before Duration does: nothing that
	// counts from its start can be known.
	StartUnseen bool
	// Queue is the time until the engine scheduled the request.
	Queue Optional[time.Duration]
	// Prefill and Decode are the phases as the engine itself measured them. They
	// go before what follows from the tokens' times.
	Prefill, Decode Optional[time.Duration]
	// PrefillEstimated and DecodeEstimated tell that they hold more than that.
	PrefillEstimated, DecodeEstimated bool
	// FirstToken holds what was told of the first token, the most trustworthy
	// first: one that cannot be true gives way to the next. A timeline of tokens
	// makes them superfluous.
	FirstToken [Trusts]Milestone
	// LastToken is the time of the last token, where no timeline has it.
	LastToken Optional[time.Duration]
	// Chunks is what was told of the chunks where no timeline has them.
	Chunks ReportedGaps
	// OutputTokens is the number of output tokens, reasoning included, that the
	// service reported.
	OutputTokens Optional[int64]
	// FirstChunksDropped and LastChunksDropped count the chunks that the timeline
	// lacks because of a limit, at either end of the stream.
	FirstChunksDropped, LastChunksDropped int64
	// Frames tells that the timeline holds frames of the stream, of which some may
	// carry no token: all that follows from it is an estimate, and of what the
	// tokens are for it tells nothing.
	Frames bool
	// TokensUnwatched tells that whoever made the observation does not look at
	// single tokens, so that none seen does not mean that none came.
	TokensUnwatched bool
	// Outcome is the outcome that the instrumentation told: one of the values of
	// names.Outcome, or empty.
	Outcome string
	// Failed tells that the request's status is an error.
	Failed bool
}

// Trust orders what may be told of the first token.
type Trust uint8

// An instrumentation that took the difference itself used one clock; of two
// absolute times that is only likely; an event is mostly of the first frame.
const (
	RelativeTime Trust = iota
	AbsoluteTime
	Event
	Trusts // how many there are
)

// Milestone is a moment of the request that an instrumentation told, if it is
// Known. It is Estimated when it may be a frame without a token.
type Milestone struct {
	After            time.Duration
	Known, Estimated bool
}

// ReportedGaps are statistics of the gaps of one request that an instrumentation
// took itself, in seconds.
type ReportedGaps struct {
	InterToken, InterChunk Distribution
}

// Optional is a value that may not be known.
type Optional[T any] struct {
	Value T
	Known bool
}

// Known returns a value that is known.
func Known[T any](v T) Optional[T] { return Optional[T]{v, true} }

// Options choose between what definitions.md leaves open.
type Options struct {
	// StallThreshold is the longest gap between two chunks that is not a stall.
	StallThreshold time.Duration
	// Denominator is what TimePerOutputToken divides by.
	Denominator Denominator
	// Fluidity holds the deadlines of FluidityIndex. The zero value turns it off.
	Fluidity Deadlines
}

// Denominator is the number of tokens that TimePerOutputToken divides by.
type Denominator uint8

const (
	// AllButFirst is N - 1, the standard of the field.
	AllButFirst Denominator = iota
	// AfterFirstChunk is N - n1, which leaves out all tokens that the first chunk
	// brought. It falls back to N - 1 where that says nothing.
	AfterFirstChunk
)
