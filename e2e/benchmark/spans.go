// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// spansPerRequest is the default batch size of the OpenTelemetry SDKs.
const spansPerRequest = 512

// foreignPaths returns the paths of spans without token events.
func foreignPaths(o options) []*path {
	body := same(engineSpans(0, len(models)))
	through := func(kind, config string, checks ...check) *path {
		return &path{
			key: key{foreignSpans, kind}, arguments: collectorWith(o.binary(kind), config), units: spansPerRequest,
			newAction: func() action { return body.inTurn(call(otlpMethod)) }, checks: append(checks, accepted(spansPerRequest)),
		}
	}
	recorded := []check{scraped("tokenpulse_requests_total", spansPerRequest), scraped("tokenpulse_time_to_first_token_seconds_count", spansPerRequest)}
	judged := slices.Concat(recorded, []check{scraped("tokenpulse_slo_requests_total", 4*spansPerRequest)}) // on `all`, too
	return []*path{
		through(foreign, foreignConfig(""), recorded...),
		through(foreignMet, foreignConfig("1h"), judged...),
		through(foreignBreached, foreignConfig("1ms"), judged...),
		through(nop, config("nop.yaml")),
		through(spanmetrics, spanmetricsConfig(countEvents), scraped("traces_span_metrics_calls_total", spansPerRequest)),
		through(peerNop, config("nop.yaml")),
	}
}

// engineSpans encodes spans without token events, as an engine sends them: with about 20
// attributes of the conventions and of vLLM. The spans cycle through the models.
func engineSpans(first, modelCount int) []byte {
	random := rand.New(rand.NewPCG(3, uint64(first)))
	seconds := func(low, high float64) float64 { return low + random.Float64()*(high-low) }
	traces, spans := newSpans()
	for i := first; i < first+spansPerRequest; i++ {
		queue, prefill, decode := seconds(0.001, 0.5), seconds(0.05, 1), seconds(1, 20)
		model := fmt.Sprintf("model-%04d", i%modelCount)
		start := epoch + int64(i)*int64(time.Millisecond)

		span := spans.AppendEmpty()
		identify(span, i)
		span.SetName("llm_request")
		span.SetStartTimestamp(pcommon.Timestamp(start))
		span.SetEndTimestamp(pcommon.Timestamp(start + int64((queue+prefill+decode)*1e9)))
		attributes := span.Attributes()
		attributes.PutStr("gen_ai.operation.name", "chat")
		attributes.PutStr("gen_ai.provider.name", "vllm")
		attributes.PutStr("gen_ai.request.model", model)
		attributes.PutStr("gen_ai.response.model", model)
		attributes.PutStr("gen_ai.request.id", fmt.Sprintf("chatcmpl-%032x", i))
		attributes.PutDouble("gen_ai.request.temperature", 0.7)
		attributes.PutDouble("gen_ai.request.top_p", 0.95)
		attributes.PutInt("gen_ai.request.max_tokens", 2048)
		attributes.PutInt("gen_ai.request.n", 1)
		attributes.PutInt("gen_ai.usage.num_sequences", 1)
		attributes.PutInt("gen_ai.usage.prompt_tokens", 100+random.Int64N(2000))
		attributes.PutInt("gen_ai.usage.completion_tokens", 50+random.Int64N(1000))
		attributes.PutDouble("gen_ai.latency.time_in_queue", queue)
		attributes.PutDouble("gen_ai.latency.time_to_first_token", queue+prefill)
		attributes.PutDouble("gen_ai.latency.e2e", queue+prefill+decode)
		attributes.PutDouble("gen_ai.latency.time_in_model_prefill", prefill)
		attributes.PutDouble("gen_ai.latency.time_in_model_decode", decode)
		attributes.PutDouble("gen_ai.latency.time_in_model_inference", prefill+decode)
		attributes.PutDouble("gen_ai.latency.time_in_model_forward", prefill+decode)
		attributes.PutDouble("gen_ai.latency.time_in_scheduler", queue/10)
	}
	return must(ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto())
}

const (
	scrapeSLI      = "`token_sli`, native and classic buckets, protobuf"
	scrapeSLIText  = "`token_sli`, classic buckets, text"
	scrapePeer     = "`prometheus` exporter, native buckets, protobuf"
	scrapePeerText = "`prometheus` exporter, classic buckets, text"

	// histogramsPerModel is how many histograms token_sli publishes for the spans of one
	// model: time to first token, time per output token, duration, three phases.
	histogramsPerModel = 6
	scrapedModels      = 84
	scrapedHistograms  = scrapedModels * histogramsPerModel // about 500

	spansPerHistogram = 32
)

// scrapes is the load of the paths that publish.
const scrapes = "scrapes"

// scrapePaths returns the paths of a scrape of about 500 histograms. spanmetrics has
// one histogram per model, so it gets more models.
func scrapePaths(o options) []*path {
	scraping := func(kind, binary, config, format string, modelCount int, counter string) *path {
		return &path{
			key: key{scrapes, kind}, arguments: collectorWith(binary, config), units: scrapedHistograms,
			newAction: func() action { return scrape(format) },
			prepare:   func(c *collectorProcess) { fill(c, modelCount, counter) },
		}
	}
	const sliCounter, peerCounter = "tokenpulse_requests_total", "traces_span_metrics_calls_total"
	return []*path{
		scraping(scrapeSLI, o.collector, spanConfig("otlp", histogramsOnly), protobufFormat, scrapedModels, sliCounter),
		scraping(scrapeSLIText, o.collector, spanConfig("otlp", histogramsOnly), textFormat, scrapedModels, sliCounter),
		scraping(scrapePeer, o.peers, spanmetricsConfig(exponential), protobufFormat, scrapedHistograms, peerCounter),
		scraping(scrapePeerText, o.peers, spanmetricsConfig(classic), textFormat, scrapedHistograms, peerCounter),
	}
}

// fill sends spans of a number of models and waits until a scrape shows them.
func fill(c *collectorProcess, modelCount int, counter string) {
	requests := (modelCount*spansPerHistogram + spansPerRequest - 1) / spansPerRequest
	for i := range requests {
		call(otlpMethod)(c, 0, engineSpans(i*spansPerRequest, modelCount))
	}
	scraped(counter, spansPerRequest).await(c, requests)
	if histograms := strings.Count(c.metrics(c.scrape), "_count{"); histograms != scrapedHistograms {
		try(fmt.Errorf("a scrape has %d histograms, expected %d", histograms, scrapedHistograms))
	}
}
