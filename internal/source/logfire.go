// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
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
	claims:  func(c candidate) bool { return c.isModelCall() && hasLogfireDuration(c) },
	attribute: func(o *Observation, key string, v pcommon.Value) {
		if key == "duration" {
			if d := durationIn(time.Second, v, &o.Unusable); d.Known && d.Value > o.Request.Duration {
				o.Request.Duration = d.Value
			}
		}
	},
}

// isLogfireBegin reports whether a span of Logfire's own integrations only begins a stream: its log is the request. One
// that failed has no log. The model of the answer is no sign: Logfire writes that of the request under this name.
func isLogfireBegin(c candidate) bool {
	if !strings.HasPrefix(c.scope, "logfire") || c.text(logfireType) != "span" || c.failed() {
		return false
	}
	if request := c.text("request_data"); request != "" {
		return strings.Contains(request, `"stream":true`) || strings.Contains(request, `"stream": true`)
	}
	return !c.has(names.Aliases[names.OutputTokens]...) && !c.has(names.GenAIFinishReasons, "response_data")
}

// isLogfireLog reports whether a span is the log of a stream. Without the stream's duration, it is no request.
func isLogfireLog(c candidate) bool { return c.text(logfireType) == "log" }

func hasLogfireDuration(c candidate) bool {
	v, ok := c.get("duration")
	if !ok {
		return false
	}
	seconds, ok := attributes.Number(v)
	return ok && seconds > 0
}
