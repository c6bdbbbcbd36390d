// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// semconv reads model calls that follow the OpenTelemetry conventions, whichever library sent them:
// .NET, python-genai, pydantic-ai, instrumentation-openai and others.
var semconv = reader{
	name:      names.SourceSemconv,
	signs:     []*sign{modelCall},
	claims:    func(c candidate) bool { return !c.has(langSmithKind) && !isLogfireLog(c) && !isLogfireBegin(c) },
	vantageOf: conventionsVantage,
	attribute: readConventions,

	silentIsWhole: reportsStreaming,
}

// conventionsVantage derives the vantage from the span's kind.
func conventionsVantage(span ptrace.Span) timeline.Vantage {
	if span.Kind() == ptrace.SpanKindServer {
		return timeline.VantageServer
	}
	return timeline.VantageClient
}

// readConventions reads names that the conventions define for metrics and some libraries write on
// spans.
func readConventions(o *Observation, key string, v pcommon.Value) {
	switch key {
	case "gen_ai.client.operation.time_per_output_chunk", "gen_ai.client.inference.time_per_output_chunk":
		o.Request.ReportedGaps.InterChunk[latency.Mean] = measure(time.Second, v, false, &o.Unusable)
	}
}

// reportsStreaming reports whether the span's library marks calls that stream, as the conventions
// require. The OpenAI instrumentation for JavaScript does not.
func reportsStreaming(c candidate) bool { return c.scope != "@opentelemetry/instrumentation-openai" }
