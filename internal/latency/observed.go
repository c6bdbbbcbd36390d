// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/outcome"
)

// Observed is what an instrumentation observed of one request, besides its
// timeline. All times are relative to the request's start.
type Observed struct {
	// Duration is the time from the request's start to its end (E - t0).
	Duration time.Duration
	// StartUnknown means that the request started before the span did. Quantities that
	// count from the start are then unknown.
	StartUnknown bool
	// Queue is the time until the engine scheduled the request.
	Queue optional.Value[time.Duration]
	// Prefill and Decode are the phases as measured by the engine. They take
	// precedence over the token times.
	Prefill, Decode optional.Value[time.Duration]
	// PrefillEstimated and DecodeEstimated mean that the reported phase includes other
	// time, such as the queue or the network.
	PrefillEstimated, DecodeEstimated bool
	// Transfer is the reported time that the KV cache took from the engine of the prefill to that of the decode.
	Transfer optional.Value[time.Duration]
	// FirstToken holds the reported times of the first token, the most reliable source
	// first. A time outside the request is skipped. A timeline of tokens takes
	// precedence.
	FirstToken [NumTimeSources]Milestone
	// Network is the reported part of the time to first token that the service did not see.
	Network optional.Value[time.Duration]
	// LastToken is the reported time of the last token. A timeline takes precedence.
	LastToken optional.Value[time.Duration]
	// ReportedGaps holds the reported gaps. A timeline takes precedence.
	ReportedGaps ReportedGaps
	// OutputTokens is the reported number of output tokens, reasoning included.
	OutputTokens optional.Value[int64]
	// ReasoningTokens is the reported number of reasoning tokens. Above OutputTokens, it proves that these exclude it.
	ReasoningTokens optional.Value[int64]
	// Choices is the number of answers that the request asked for, if it is known. OutputTokens are of all of them.
	Choices int64
	// InputTokens is the reported number of input tokens, and CachedInputTokens that of those which were
	// read from a cache.
	InputTokens, CachedInputTokens optional.Value[int64]
	// AudioTokens is the reported number of output tokens that are audio. They are part of OutputTokens, and not of N.
	AudioTokens optional.Value[int64]
	// AudioDuration is the length of the audio in the answer.
	AudioDuration optional.Value[time.Duration]
	// AcceptedTokens and DraftTokens are the reported counts of speculative decoding.
	AcceptedTokens, DraftTokens optional.Value[int64]
	// FirstChunksDropped and LastChunksDropped count the chunks that a limit dropped
	// from the beginning and the end of the timeline.
	FirstChunksDropped, LastChunksDropped int64
	// Frames means that the timeline holds frames of the response, some of which may
	// carry no token. Everything derived from it is estimated, and its channels are
	// ignored.
	Frames bool
	// TokensAssumed means that chunks of a timeline count as one token each, though they may hold more.
	// TokensPerChunk is then unknown, and everything derived from the number of tokens is estimated unless it is reported.
	TokensAssumed bool
	// TokensNotObserved means that the instrumentation does not observe single tokens, so
	// a timeline without chunks does not mean that no token arrived.
	TokensNotObserved bool
	// StreamAsked means that the request asked for a stream.
	StreamAsked bool
	// AmbiguousUnit means that the sender reports a time of the first token whose unit is unknown, and NotRead that it
	// reports timings under names that no reader reads.
	AmbiguousUnit, NotRead bool
	// NotStreamed means that the answer came as a whole, so that its tokens have no times.
	NotStreamed bool
	// EventsDropped means that events are missing from the span, so that the sender may have
	// reported a first token.
	EventsDropped bool
	// FirstTokenRejected means that a reported time of the first token was outside the request.
	FirstTokenRejected bool
	// Outcome is the reported outcome: one of names.Outcome*, or empty.
	Outcome string
	// Failed means that the request's status is an error, and ErrorType is its error.type, if it has one.
	Failed    bool
	ErrorType string
	// Reason is the finish reason, of several the worst.
	Reason outcome.Reason
	// InEngine means that the observer is the engine, which cannot know who aborted a request.
	InEngine bool
	// Interrupted means that the user interrupted the answer, such as by speaking. The request is then cancelled.
	Interrupted bool
	// Tokenless means that the answer is complete though it may have no token: it holds output that is
	// not text, or the request asked for none.
	Tokenless bool
}

// TimeSource is a source of the first token's time.
type TimeSource uint8

// The sources, the most reliable first: a duration was measured with one clock; two
// absolute times may come from different clocks; an event usually marks the first
// frame, which may carry no token.
const (
	RelativeTime TimeSource = iota
	AbsoluteTime
	Event
	NumTimeSources // number of sources
)

// Milestone is the reported time of an event in the request. Estimated means that
// it may be the time of a frame without a token.
type Milestone struct {
	Offset           time.Duration
	Known, Estimated bool
}

// ReportedGaps holds statistics of the gaps as computed by the instrumentation, in
// seconds.
type ReportedGaps struct {
	InterToken, InterChunk Distribution
}
