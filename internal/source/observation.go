// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Observation is what a span reports about one model call.
type Observation struct {
	// Reader is the reader that claimed the span: an index into Names.
	Reader int
	// Vantage is the observer whose clock the times come from.
	Vantage timeline.Vantage
	// Unannotated means that no attribute of the span begins with names.Prefix.
	Unannotated bool
	Request     latency.Observed
	// Timeline walks the arrivals of tokens, or of frames. It is empty if the span has none, and
	// valid until the observer reads its next span.
	Timeline timeline.Walk
	// Standard holds the values of the standard attributes, under their own names or an alias.
	Standard [names.StandardCount]Reported
	// Unusable counts attributes that were ignored because their value has the wrong type or form.
	Unusable int64
	// Rejected counts times to the first chunk outside [0, request duration], by reason.
	Rejected [latency.NumReasons]int64

	start pcommon.Timestamp
	// streaming is what the span reports; unknown if it has no such attribute.
	streaming optional.Value[bool]
	// firstChunkIsFrame is the reader's field of that name, unless the span is more precise.
	firstChunkIsFrame bool
}

// Reported is the value of a standard attribute on a span.
type Reported struct {
	// Text, Tokens or Duration holds the value, according to the attribute.
	Text     string
	Tokens   int64
	Duration time.Duration
	Known    bool
	// Rank is 0 under the attribute's own name, and higher for less trusted aliases.
	Rank uint8
}

func (r Reported) number() optional.Value[int64] {
	return optional.Value[int64]{Value: r.Tokens, Known: r.Known}
}

// adoptStandard hands the standard attributes that numbers are derived from to the request.
func (o *Observation) adoptStandard() {
	o.Request.OutputTokens = o.Standard[names.OutputTokens].number()
	o.Request.ReasoningTokens = o.Standard[names.ReasoningTokens].number()
	o.Request.AudioTokens = o.Standard[names.AudioOutputTokens].number()
	o.Request.Choices = o.Standard[names.ChoiceCount].Tokens
	o.Request.InputTokens = o.Standard[names.InputTokens].number()
	o.Request.CachedInputTokens = o.Standard[names.CacheReadInputTokens].number()
	o.Request.StreamAsked = o.streaming.Value
	o.Request.InEngine = o.Vantage == timeline.VantageEngine
}

// set keeps a value of a standard attribute unless a more trusted one is known.
func (o *Observation) set(standard names.Standard, value Reported) {
	if kept := &o.Standard[standard]; !kept.Known || value.Rank < kept.Rank {
		value.Known = true
		*kept = value
	}
}

// setText keeps a text that is not empty.
func (o *Observation) setText(standard names.Standard, rank uint8, v pcommon.Value) {
	if v.Str() != "" {
		o.set(standard, Reported{Text: v.Str(), Rank: rank})
	}
}

// setTokens keeps a number of tokens.
func (o *Observation) setTokens(standard names.Standard, rank uint8, v pcommon.Value) {
	if n := integer(v, &o.Unusable); n.Known && n.Value >= 0 {
		o.set(standard, Reported{Tokens: n.Value, Rank: rank})
	} else if n.Known {
		o.Unusable++
	}
}
