package series

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

// Metric describes a metric.
type Metric struct{ Name, Unit, Description string }

// Metrics beside those of Histograms and Counters. Ratios have no unit: with the
// unit 1 Prometheus would append _ratio to what comes by OTLP, and one set of alert
// rules could not serve both ways.
var (
	Requests           = Metric{names.Requests, "{request}", "Finished requests."}
	SLORequests        = Metric{names.SLORequests, "{request}", "Finished requests, by what a service level objective says of them."}
	SLOObjective       = Metric{names.SLOObjective, "", "Share of requests that are to be good, as configured."}
	SLOBurnRate        = Metric{names.SLOBurnRate, "", "How fast the error budget burns over a recent window: 1 uses it up exactly."}
	SLOBudgetRemaining = Metric{names.SLOBudgetRemaining, "", "Share of the error budget that is left in the objective's window. Negative when it is overdrawn."}
)

// Histogram describes the metric that publishes a quantity.
type Histogram struct {
	Quantity Quantity
	Metric
	// Phase is the value of the label `phase`, or empty: several quantities can
	// share one metric and be told apart by it.
	Phase string
	// ClassicBounds are the upper bounds of the metric's classic buckets, unless
	// the configuration has others.
	ClassicBounds []float64
}

// Histograms lists the metric of each Quantity, in their order.
var Histograms = [quantities]Histogram{
	{TimeToFirstToken, Metric{names.TimeToFirstToken, seconds, "Time from the request's start to its first token, on any channel."}, "", durationBounds},
	{TimeToFirstOutputToken, Metric{names.TimeToFirstOutputToken, seconds, "Time from the request's start to its first token that is not reasoning."}, "", durationBounds},
	{TimePerOutputToken, Metric{names.TimePerOutputToken, seconds, "Mean time per output token of a request, after its first token."}, "", gapBounds},
	{RequestDuration, Metric{names.RequestDuration, seconds, "Time from the request's start to its end."}, "", durationBounds},
	{QueueDuration, Metric{names.PhaseDuration, seconds, phaseDescription}, names.PhaseQueue, durationBounds},
	{PrefillDuration, Metric{names.PhaseDuration, seconds, phaseDescription}, names.PhasePrefill, durationBounds},
	{DecodeDuration, Metric{names.PhaseDuration, seconds, phaseDescription}, names.PhaseDecode, durationBounds},
	{OutputTokenRate, Metric{names.OutputTokenRate, "{token}/s", "Output tokens per second of a request, after its first token."}, "", rateBounds},
	{InterTokenLatency, Metric{names.InterTokenLatency, seconds, "Time between tokens: one value per token, the gap before its chunk shared among the chunk's tokens."}, "", gapBounds},
	{InterChunkLatency, Metric{names.InterChunkLatency, seconds, "Time between chunks that hold tokens: one value per chunk."}, "", gapBounds},
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
	Count Count
	Metric
	// Type is the value of the label `type`, or empty.
	Type string
}

// Counters lists the metric of each Count, in their order.
var Counters = [counts]Counter{
	{InputTokens, Metric{names.Tokens, tokens, tokensDescription}, names.TokensInput},
	{OutputTokens, Metric{names.Tokens, tokens, tokensDescription}, names.TokensOutput},
	{ReasoningTokens, Metric{names.Tokens, tokens, tokensDescription}, names.TokensReasoning},
	{CachedInputTokens, Metric{names.Tokens, tokens, tokensDescription}, names.TokensCachedInput},
	{Stalls, Metric{names.Stalls, "{stall}", "Gaps between chunks that were longer than the stall threshold."}, ""},
	{StallSeconds, Metric{names.StallDuration, seconds, "Sum of the gaps that were stalls."}, ""},
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
