package sli

import "github.com/tokenpulse/tokenpulse/internal/names"

// Quantity is one of the distributions that are kept for each series and
// outcome.
type Quantity uint8

// The quantities of definitions.md that are distributions over requests. A
// request has at most one value of each but the last two: of these it has a
// distribution itself, one value per token or chunk, which comes as an encoded
// sketch.
const (
	TimeToFirstToken Quantity = iota
	TimeToFirstOutputToken
	TimePerOutputToken
	RequestDuration
	QueueDuration
	PrefillDuration
	DecodeDuration
	OutputTokenRate
	InterTokenLatency
	InterChunkLatency

	quantities
	singleValues = InterTokenLatency
)

// Histogram describes the metric that publishes a quantity.
type Histogram struct {
	Quantity    Quantity
	Name        string
	Unit        string
	Description string
	// Phase is the value of the label `phase`, or empty: several quantities can
	// share one metric and be told apart by it.
	Phase string
	// ClassicBounds are the upper bounds of the metric's classic buckets, unless
	// the configuration has others.
	ClassicBounds []float64
}

// Histograms lists the metric of each Quantity, in their order.
var Histograms = [quantities]Histogram{
	{TimeToFirstToken, names.TimeToFirstToken, seconds, "Time from the request's start to its first token, on any channel.", "", durationBounds},
	{TimeToFirstOutputToken, names.TimeToFirstOutputToken, seconds, "Time from the request's start to its first token that is not reasoning.", "", durationBounds},
	{TimePerOutputToken, names.TimePerOutputToken, seconds, "Mean time per output token of a request, after its first token.", "", gapBounds},
	{RequestDuration, names.RequestDuration, seconds, "Time from the request's start to its end.", "", durationBounds},
	{QueueDuration, names.PhaseDuration, seconds, phaseDescription, names.PhaseQueue, durationBounds},
	{PrefillDuration, names.PhaseDuration, seconds, phaseDescription, names.PhasePrefill, durationBounds},
	{DecodeDuration, names.PhaseDuration, seconds, phaseDescription, names.PhaseDecode, durationBounds},
	{OutputTokenRate, names.OutputTokenRate, "{token}/s", "Output tokens per second of a request, after its first token.", "", rateBounds},
	{InterTokenLatency, names.InterTokenLatency, seconds, "Time between tokens: one value per token, the gap before its chunk shared among the chunk's tokens.", "", gapBounds},
	{InterChunkLatency, names.InterChunkLatency, seconds, "Time between chunks that hold tokens: one value per chunk.", "", gapBounds},
}

const (
	seconds          = "s"
	tokens           = "{token}"
	phaseDescription = "Time a request spent waiting for a place (queue), until its first token (prefill), and from there to its last (decode)."
)

// Count is one of the sums that are kept for each series, whatever the outcome.
type Count uint8

// What requests are summed up to.
const (
	InputTokens Count = iota
	OutputTokens
	ReasoningTokens
	CachedInputTokens
	Stalls
	StallSeconds

	counts
)

// Counter describes the metric that publishes a Count.
type Counter struct {
	Count       Count
	Name        string
	Unit        string
	Description string
	// Type is the value of the label `type`, or empty.
	Type string
}

// Counters lists the metric of each Count, in their order.
var Counters = [counts]Counter{
	{InputTokens, names.Tokens, tokens, tokensDescription, names.TokensInput},
	{OutputTokens, names.Tokens, tokens, tokensDescription, names.TokensOutput},
	{ReasoningTokens, names.Tokens, tokens, tokensDescription, names.TokensReasoning},
	{CachedInputTokens, names.Tokens, tokens, tokensDescription, names.TokensCachedInput},
	{Stalls, names.Stalls, "{stall}", "Gaps between chunks that were longer than the stall threshold.", ""},
	{StallSeconds, names.StallDuration, seconds, "Sum of the gaps that were stalls.", ""},
}

const tokensDescription = "Tokens of requests. Output includes reasoning, input includes cached input."

// Outcome tells how a request ended.
type Outcome uint8

// The outcomes of definitions.md.
const (
	Success Outcome = iota
	Error
	Cancelled
	Incomplete

	outcomes
)

// OutcomeNames holds the name of each Outcome.
var OutcomeNames = [outcomes]string{names.OutcomeSuccess, names.OutcomeError, names.OutcomeCancelled, names.OutcomeIncomplete}
