// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package conventions is the table of the metrics that the OpenTelemetry conventions for generative AI define,
// and the choice of those to publish. A row says which of our numbers a metric carries. Package series records
// requests by the rows, and what publishes our metrics publishes these, too.
//
// They are series of their own, not our metrics renamed on their way out: labels differ, several vantages share
// a name, and some requests must not count. Over OTLP they have explicit buckets, because queries of the
// conventions read _bucket, _count and _sum. The price is that a request is recorded twice, and that an exporter
// does not add up these metrics of others.
package conventions

import (
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Generation is a state of the conventions.
type Generation uint8

const (
	// V141 is v1.41, the last release in the repository of all conventions.
	V141 Generation = iota
	// Latest is the present state of the repository for generative AI, which has no release.
	Latest

	generations
)

// GenerationNames holds the value of the setting of each Generation.
var GenerationNames = [generations]string{"v1.41", "latest"}

// Side is the end of a request that a metric is named after.
type Side uint8

const (
	// Client metrics count requests that a client or a gateway saw.
	Client Side = iota
	// Server metrics count requests that a server or an engine saw.
	Server
	// Sides is the number of sides.
	Sides
)

// Attributes are those of every metric. A metric has those that are known of a request.
var Attributes = []string{
	names.GenAIOperationName, names.GenAIProviderName, names.GenAIRequestModel, names.GenAIResponseModel, names.ServerAddress, names.ServerPort,
}

// Metric is a row of the table.
type Metric struct {
	// Names holds the name in each Generation. It is empty where there is no such metric.
	Names             [generations]string
	Unit, Description string
	Side              Side
	// Number is what the metric carries.
	Number numbers.ID
	// Bounds are the advised upper bounds of the buckets of a histogram. A metric without them is a counter.
	Bounds []float64
	// Streaming means that only calls that stream count.
	Streaming bool
	// Successful means that only requests with the outcome success count.
	Successful bool
	// Zero means that a request without the number counts as 0.
	Zero bool

	// Label is the attribute besides those of every metric, or empty. It distinguishes the errors of a request,
	// or the modalities of its tokens, unless TokenType is its value.
	Label, TokenType string

	// Differs says where the definition of Number differs from that of the metric.
	Differs string
}

// Published is a row of which metrics are published.
type Published struct {
	*Metric
	// As holds the metrics: one for each name.
	As []numbers.Metric
}

// Names returns the names of the rows in some generations, each once.
func Names(generations ...string) (all []string) {
	for i := range Table {
		for g, name := range Table[i].Names {
			if name != "" && slices.Contains(generations, GenerationNames[g]) && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}
