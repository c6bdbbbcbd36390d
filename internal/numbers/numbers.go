// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package numbers is the table of the numbers that a request can have: one row each. What derives,
// writes, reads, judges or aggregates numbers loops over the table, so a new number is one row
// and its formula.
package numbers

import (
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// ID identifies a number. It indexes Table.
type ID uint8

// The numbers of docs/definitions.md. A request has each at most once, apart from InterTokenLatency,
// InterChunkLatency, TokensPerChunk and InterAudioLatency: of these it has a distribution, with one value per token or chunk.
//
// Lists of numbers on spans have this order, as do the rows of docs/attributes.md. A new number goes to the end of its group: one
// with a histogram before TimeToAnswer, a count of tokens that a service reports before InterTokenMean, any other before InputTokens.
const (
	TimeToFirstToken ID = iota
	TimeToFirstOutputToken
	TimePerOutputToken
	RequestDuration
	QueueDuration
	PrefillDuration
	DecodeDuration
	NetworkDuration
	DecodeShare
	OutputTokenRate
	RequestTokenRate
	PrefillTokenRate
	TimePerTokenFrom0
	TimePerTokenFrom10
	TimePerTokenFrom100
	TimePerTokenFrom1000
	TransferDuration
	TimeToFirstAudio
	RealTimeFactor
	TimeToAnswer // of a trace
	InterTokenLatency
	InterChunkLatency
	TokensPerChunk
	InterAudioLatency

	StallDuration
	FluidityIndex
	StallCount
	ChunkCount
	TokenCount
	TokenCountMismatch
	ClockAnomalies
	CachedInputShare
	SpeculativeAcceptedTokens
	SpeculativeDraftTokens
	AudioDuration
	AudioChunkCount

	InputTokens
	OutputTokens
	ReasoningTokens
	CachedInputTokens
	CacheWriteInputTokens
	TextInputTokens
	TextOutputTokens
	TextCachedInputTokens
	ImageInputTokens
	ImageOutputTokens
	ImageCachedInputTokens
	AudioInputTokens
	AudioOutputTokens
	AudioCachedInputTokens

	InterTokenMean
	InterTokenP50
	InterTokenP95
	InterTokenP99
	InterTokenMax
	InterChunkMean
	InterChunkP50
	InterChunkP95
	InterChunkP99
	InterChunkMax
	InterAudioMean
	InterAudioP50
	InterAudioP95
	InterAudioP99
	InterAudioMax

	Count // of numbers

	// Distributions is the number of IDs that may have a histogram.
	Distributions = InterAudioLatency + 1
	// Singles is the number of IDs that may have a histogram with one value per request.
	Singles = InterTokenLatency
)

// Metric describes a metric.
type Metric struct{ Name, Unit, Description string }

// Number is a row of the table.
type Number struct {
	ID ID
	// Attribute is the attribute of a span that holds the number. Of a distribution, it holds the
	// encoded sketch.
	Attribute string
	// Meaning describes the attribute to users. It is empty if its formula in docs/definitions.md does.
	Meaning string
	// Unit is that of the attribute, as UCUM writes it. A number in Seconds is a duration.
	Unit string
	// Whole means that the attribute is an integer.
	Whole bool
	// Full means that token_latency writes the attribute with `detail: full` only, unless an SLO
	// reads it.
	Full bool
	// Judged means that an SLO can limit the number from above.
	Judged bool
	// Instead is the indicator of an SLO to use in place of a number of which higher is better.
	Instead string

	// Metric aggregates the number over requests. Its name is empty if the number has no metric.
	Metric Metric
	// Phase, Position and Type are the values of these labels, in metrics that several numbers share. Every count
	// of a usage report has a Type.
	Phase, Position, Type string
	// Modality is that of the tokens that a count of the Type is limited to, or empty.
	Modality string
	// Bounds are the default upper bounds of the classic buckets of a histogram. A metric without
	// them is a sum.
	Bounds []float64
	// Off means that the metric is off by default. Off are numbers that follow from others, or
	// that equal others for most models.
	Off bool
	// Percentiles means that the gauges of percentiles are on by default.
	Percentiles bool
}

// Units of numbers.
const (
	Seconds   = "s"
	Tokens    = "{token}"
	PerSecond = "{token}/s"
	Ratio     = "1"
)

// Row returns the row of a number.
func (id ID) Row() *Number { return &Table[id] }

// Attribute returns the attribute of a span that holds the number.
func (id ID) Attribute() string { return Table[id].Attribute }

// Label returns the label of a histogram that several numbers share. The value is empty if they do not.
func (n *Number) Label() (name, value string) {
	if n.Position != "" {
		return names.LabelPosition, n.Position
	}
	return names.LabelPhase, n.Phase
}

// Name returns the number's attribute as users write it in the configuration, and as lists on
// spans have it.
func (id ID) Name() string { return Table[id].Attribute[len(names.Prefix):] }

// APIName returns the name that the HTTP API has for a latency.
func (id ID) APIName() string {
	row := id.Row()
	name := row.Metric.Name
	switch {
	case row.Phase != "":
		return row.Phase
	case row.Position != "":
		name = row.Attribute
	}
	return strings.ReplaceAll(strings.TrimPrefix(name, names.Prefix), ".", "_")
}

// IsDistribution reports whether a request has many values of the number.
func (id ID) IsDistribution() bool { return Singles <= id && id < Distributions }

// OfTrace reports whether the number is one of a trace instead of a request.
func (id ID) OfTrace() bool { return id == TimeToAnswer }

// Histograms holds the numbers that have a histogram, in the order of the metrics.
var Histograms = func() (all []ID) {
	for id := range Distributions {
		if Table[id].Metric.Name != "" {
			all = append(all, id)
		}
	}
	return all
}()

// GapPercentiles holds the percentiles of the gaps of a request.
var GapPercentiles = [...]ID{InterTokenP50, InterTokenP95, InterTokenP99, InterChunkP50, InterChunkP95, InterChunkP99, InterAudioP50, InterAudioP95, InterAudioP99}

// Sums holds the numbers whose metric is a sum. Stored histories have them in this order, so append
// new ones.
var Sums = [...]ID{
	InputTokens, OutputTokens, ReasoningTokens, CachedInputTokens, StallCount, StallDuration, CacheWriteInputTokens,
	SpeculativeAcceptedTokens, SpeculativeDraftTokens,
}

// Usage holds the counts of tokens that a service reports.
var Usage = func() (all []ID) {
	for id := range Count {
		if Table[id].Type != "" {
			all = append(all, id)
		}
	}
	return all
}()

// Positions holds the first position of each number by position, from TimePerTokenFrom0 on. The position of a token is the
// number of tokens before it in the answer.
var Positions = [...]int64{0, 10, 100, 1000}

// Indicators holds the numbers whose absence has a reason, in the order of names.UnmeasuredIndicators.
var Indicators = [len(names.UnmeasuredIndicators)]ID{TimeToFirstToken, TimePerOutputToken, TokensPerChunk}
