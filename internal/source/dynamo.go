// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// dynamoWorker is the name of the spans of Dynamo's workers. The frontend's spans have other names.
const dynamoWorker = "engine.generate"

// dynamo reads the spans of NVIDIA Dynamo: those of the frontend, which is a gateway, and those of
// the workers. Numbers are texts, in milliseconds.
var dynamo = reader{
	name: names.SourceDynamo,
	signs: []*sign{
		{key: "ttft_ms"},
		{key: "avg_itl_ms"},
		{key: "itl_p50_ms"},
		{key: "itl_p99_ms"},
		{key: "itl_max_ms"},
		{key: "input_tokens"},
		{key: "output_tokens"},
		{key: "cancelled"},
	},
	claims: func(c candidate) bool {
		switch c.span.Name() {
		case "http-request", "generate", dynamoWorker:
			return !c.has("total_time", "inference_time")
		}
		return false
	},
	vantageOf: func(span ptrace.Span) timeline.Vantage {
		if span.Name() == dynamoWorker {
			return timeline.VantageEngine
		}
		return timeline.VantageGateway
	},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		gaps := &o.Request.ReportedGaps.InterToken
		perChunk := o.Vantage == timeline.VantageEngine // the frontend divides a gap by its chunk's tokens
		switch key {
		case "ttft_ms":
			o.streaming = optional.Of(true) // Dynamo times the tokens of every answer
		case "avg_itl_ms":
			gaps[latency.Mean] = measure(time.Millisecond, v, perChunk, &o.Unusable)
		case "itl_p50_ms":
			gaps[latency.P50] = measure(time.Millisecond, v, perChunk, &o.Unusable)
		case "itl_p99_ms":
			gaps[latency.P99] = measure(time.Millisecond, v, perChunk, &o.Unusable)
		case "itl_max_ms":
			gaps[latency.Max] = measure(time.Millisecond, v, perChunk, &o.Unusable)
		case "input_tokens":
			o.setTokens(names.InputTokens, readerRank, v)
		case "output_tokens":
			o.setTokens(names.OutputTokens, readerRank, v)
		case "model":
			o.setText(names.RequestModel, readerRank, v)
		case "cancelled":
			if boolean(v).Value {
				o.Request.Outcome = names.OutcomeCancelled
			}
		}
	},
}
