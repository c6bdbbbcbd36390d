// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const logfireType = "logfire.span_type"

// logfire reads the model calls of Logfire that stream. They come in two spans: one that ends when the stream begins,
// and a log, without a length of its own, that says how long the stream took and what it used. The log is the request;
// the processor adds the time before the stream if both spans are in one batch.
// Calls that do not stream are in one span, which the conventions' reader reads.
var logfire = reader{
	name:    names.SourceLogfire,
	vantage: timeline.VantageClient,
	signs:   []*sign{{logfireType, oneOf("log")}},
	claims:  candidate.isModelCall,
	attribute: func(o *Observation, key string, v pcommon.Value) {
		if key == "duration" {
			if d := durationIn(time.Second, v, &o.Unusable); d.Known && d.Value > o.Request.Duration {
				o.Request.Duration = d.Value
			}
		}
	},
}

// isLogfireBegin reports whether a span of Logfire only begins a stream: its log is the request. One that failed has no
// log.
func isLogfireBegin(c candidate) bool {
	return c.text(logfireType) == "span" && !c.failed() && !c.has(names.Aliases[names.OutputTokens]...) && !c.has(names.GenAIResponseModel, names.GenAIFinishReasons, "response_data")
}
