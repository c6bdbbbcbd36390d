// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import "github.com/tokenpulse/tokenpulse/internal/names"

// Quantity is one of the distributions that each series has for each outcome.
type Quantity uint8

// The quantities of docs/definitions.md that are aggregated over requests. A request
// has at most one value of each. InterTokenLatency and InterChunkLatency are
// exceptions: of these it has a distribution, with one value per token or chunk.
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

// Metrics other than Histograms and Counters. Ratios have no unit: Prometheus appends
// `_ratio` to metrics with unit 1 that arrive over OTLP, so that the same alert rules
// could not serve scraped and pushed metrics.
var (
	Requests           = Metric{names.Requests, "{request}", "Finished requests."}
	SLORequests        = Metric{names.SLORequests, "{request}", "Finished requests by SLO and verdict. The SLO `all` combines every SLO that applies (goodput)."}
	SLOObjective       = Metric{names.SLOObjective, "", "Share of requests that must be good, as configured."}
	SLOBurnRate        = Metric{names.SLOBurnRate, "", "Speed at which bad requests spend the error budget over a window: 1 spends exactly the budget."}
	SLOBudgetRemaining = Metric{names.SLOBudgetRemaining, "", "Share of the error budget that is left in the objective's window. Negative when more requests were bad than the objective allows."}
)

// Histogram describes the metric that publishes a quantity.
type Histogram struct {
	Quantity Quantity
	Metric
	// Phase is the value of the label `phase` of quantities that share a metric, else
	// empty.
	Phase string
	// ClassicBounds are the default upper bounds of the metric's classic buckets.
	ClassicBounds []float64
}

// Histograms holds the metric of each Quantity.
var Histograms = [quantities]Histogram{
	{TimeToFirstToken, Metric{names.TimeToFirstToken, seconds, "Time from the request's start to its first token, on any channel."}, "", firstTokenBounds},
	{TimeToFirstOutputToken, Metric{names.TimeToFirstOutputToken, seconds, "Time from the request's start to its first token that is not reasoning."}, "", firstTokenBounds},
	{TimePerOutputToken, Metric{names.TimePerOutputToken, seconds, "Mean time per output token of a request, after its first token."}, "", gapBounds},
	{RequestDuration, Metric{names.RequestDuration, seconds, "Time from the request's start to its end."}, "", durationBounds},
	{QueueDuration, Metric{names.PhaseDuration, seconds, phaseDescription}, names.PhaseQueue, phaseBounds},
	{PrefillDuration, Metric{names.PhaseDuration, seconds, phaseDescription}, names.PhasePrefill, phaseBounds},
	{DecodeDuration, Metric{names.PhaseDuration, seconds, phaseDescription}, names.PhaseDecode, phaseBounds},
	{OutputTokenRate, Metric{names.OutputTokenRate, "{token}/s", "Output tokens per second of a request, after its first token."}, "", rateBounds},
	{InterTokenLatency, Metric{names.InterTokenLatency, seconds, "Time between tokens: one value per token, which is the gap before its chunk divided by the tokens of the chunk."}, "", gapBounds},
	{InterChunkLatency, Metric{names.InterChunkLatency, seconds, "Time between chunks that hold tokens: one value per chunk."}, "", gapBounds},
}

const (
	seconds          = "s"
	tokens           = "{token}"
	phaseDescription = "Time that a request spent in a phase: waiting for the engine (queue), until its first token (prefill), and from its first to its last token (decode)."
)

// Count is one of the sums that each series has over all outcomes.
type Count uint8

// The sums.
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

// Counters holds the metric of each Count.
var Counters = [counts]Counter{
	{InputTokens, Metric{names.Tokens, tokens, tokensDescription}, names.TokensInput},
	{OutputTokens, Metric{names.Tokens, tokens, tokensDescription}, names.TokensOutput},
	{ReasoningTokens, Metric{names.Tokens, tokens, tokensDescription}, names.TokensReasoning},
	{CachedInputTokens, Metric{names.Tokens, tokens, tokensDescription}, names.TokensCachedInput},
	{Stalls, Metric{names.Stalls, "{stall}", "Gaps between chunks that exceed the stall threshold."}, ""},
	{StallSeconds, Metric{names.StallDuration, seconds, "Sum of the gaps that are stalls."}, ""},
}

const tokensDescription = "Tokens. Output includes reasoning, input includes cached input."

// Outcome is how a request ended.
type Outcome uint8

// The outcomes of docs/definitions.md.
const (
	Success Outcome = iota
	Error
	Cancelled
	Incomplete

	outcomes
)

// OutcomeNames holds the label value of each Outcome.
var OutcomeNames = [outcomes]string{names.OutcomeSuccess, names.OutcomeError, names.OutcomeCancelled, names.OutcomeIncomplete}
