package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// dynamoWorker names the spans of Dynamo's workers. Its other spans are of the
// frontend.
const dynamoWorker = "engine.generate"

// dynamo reads the spans of NVIDIA Dynamo: that of the frontend, at the vantage of
// a gateway, and that of the worker. Numbers are text, in milliseconds.
var dynamo = reader{
	name:    names.SourceDynamo,
	vantage: names.VantageGateway,
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
	vantageOf: func(span ptrace.Span) string {
		if span.Name() == dynamoWorker {
			return names.VantageEngine
		}
		return names.VantageGateway
	},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		gaps := &o.Request.Chunks.InterToken
		perChunk := o.Vantage == names.VantageEngine // the frontend shares a gap out among its tokens
		switch key {
		case "ttft_ms":
			o.streaming = yes // Dynamo watches the tokens of every answer
		case "avg_itl_ms":
			gaps[latency.Mean] = measure(time.Millisecond, v, perChunk, &o.Unusable)
		case "itl_p50_ms":
			gaps[latency.P50] = measure(time.Millisecond, v, perChunk, &o.Unusable)
		case "itl_p99_ms":
			gaps[latency.P99] = measure(time.Millisecond, v, perChunk, &o.Unusable)
		case "itl_max_ms":
			gaps[latency.Max] = measure(time.Millisecond, v, perChunk, &o.Unusable)
		case "input_tokens":
			o.tellTokens(names.InputTokens, readersRank, v)
		case "output_tokens":
			o.tellTokens(names.OutputTokens, readersRank, v)
		case "model":
			o.tellText(names.RequestModel, readersRank, v)
		case "cancelled":
			if truth(v) == yes {
				o.Request.Outcome = names.OutcomeCancelled
			}
		}
	},
}
