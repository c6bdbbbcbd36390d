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
	// Queue is the time until the engine scheduled the request.
	Queue Optional[time.Duration]
	// FirstToken is the time to the first token where that is all that is known
	// of the tokens' times. A timeline that holds chunks makes it superfluous.
	FirstToken Optional[time.Duration]
	// OutputTokens is the number of output tokens, reasoning included, that the
	// service reported.
	OutputTokens Optional[int64]
	// ChunksDropped counts the chunks at the end of the stream that the timeline
	// lacks because of a limit.
	ChunksDropped int64
	// Outcome is the outcome that the instrumentation told: one of the values of
	// names.Outcome, or empty.
	Outcome string
	// Failed tells that the request's status is an error.
	Failed bool
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
