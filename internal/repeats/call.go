// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package repeats finds the spans that two instrumentations of one process sent of one request, such as an agent
// framework and the SDK that it calls. docs/sources.md has the rule.
package repeats

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Call is a model call of a batch, which a token_latency processor annotated.
type Call struct {
	Span     ptrace.Span
	Scope    string
	Resource int // index of its resource in the batch
	Of       pcommon.Map
	Above    int // the nearest model call above it, with no agent or tool in between, or None
}

// None is the index of no call.
const None = -1

// call is what the rule compares.
type call struct {
	*Call
	vantage, response string
	input, output     int64 // tokens, or unknown
	timing            int
	depth             int // the number of calls above
}

const unknown = -1

// responseIDs are the attributes with the ID of a response.
var responseIDs = [...]string{names.GenAIResponseID, "ai.response.id"}

func newCall(c *Call) call {
	own := c.Span.Attributes()
	read := call{
		Call: c, vantage: attributes.Text(own, names.Vantage), timing: timingOf(own),
		input: tokens(own, names.GenAIInputTokens), output: tokens(own, names.GenAIOutputTokens),
	}
	for _, name := range responseIDs {
		if read.response == "" {
			read.response = attributes.Text(own, name)
		}
	}
	return read
}

func tokens(own pcommon.Map, name string) int64 {
	if m := attributes.Measured(own, name); m.Known {
		return int64(m.Value)
	}
	return unknown
}

// Timings of a call: the more, the better it counts.
const (
	withoutTiming = iota
	withFirstToken
	withTimeline
)

func timingOf(own pcommon.Map) int {
	if HasTimeline(own) {
		return withTimeline
	}
	if attributes.Measured(own, numbers.TimeToFirstToken.Attribute()).Known {
		return withFirstToken
	}
	return withoutTiming
}

// HasTimeline reports whether a processor derived the latency of a call from the arrivals of its tokens.
func HasTimeline(attributes pcommon.Map) bool {
	_, ok := attributes.Get(numbers.ChunkCount.Attribute())
	return ok
}

// conflicts reports whether two calls have other responses.
func (c *call) conflicts(other *call) bool {
	return c.response != "" && other.response != "" && c.response != other.response
}

// sameRequest reports whether two calls are of one request: by the ID of the response or, if one has none, by model and
// tokens. Of a call and the one above it, either may lack the tokens, as SDKs do that do not read the usage of a stream.
func (c *call) sameRequest(other *call, nested bool) bool {
	if c.response != "" && other.response != "" {
		return c.response == other.response
	}
	same := func(a, b int64) bool {
		return a == b && (nested || a != unknown) || nested && (a == unknown || b == unknown)
	}
	return same(c.input, other.input) && same(c.output, other.output) && c.sameModel(other, nested)
}

// sameModel compares the models that the calls name. Only of a call and the one above it, either may name none.
func (c *call) sameModel(other *call, nested bool) bool {
	own, others := modelsOf(c.Span), modelsOf(other.Span)
	if own == others {
		return nested || own != [2]string{}
	}
	if own == [2]string{} || others == [2]string{} {
		return nested
	}
	for _, a := range own {
		for _, b := range others {
			if a != "" && b != "" && sameModel(a, b) {
				return true
			}
		}
	}
	return false
}

func modelsOf(span ptrace.Span) [2]string {
	own := span.Attributes()
	return [2]string{attributes.Text(own, names.GenAIRequestModel), attributes.Text(own, names.GenAIResponseModel)}
}

// within reports whether the time of a call lies within that of another, with some slack.
func (c *call) within(other *call) bool {
	return c.Span.StartTimestamp()+slack >= other.Span.StartTimestamp() && c.Span.EndTimestamp() <= other.Span.EndTimestamp()+slack
}
