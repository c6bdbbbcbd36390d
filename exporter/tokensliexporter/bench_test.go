// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const tokensPerRequest = 500

// typicalSpan returns the attributes that the processor writes for a stream of 500 tokens
// about 20 ms apart.
func typicalSpan(random *rand.Rand, model string) map[string]any {
	gaps := make([]float64, tokensPerRequest-1)
	for i := range gaps {
		gaps[i] = 0.02 * math.Exp(0.3*random.NormFloat64())
	}
	attributes := with(map[string]any{
		"gen_ai.request.model":                  model,
		"tokenpulse.time_to_first_token":        math.Exp(0.5 * random.NormFloat64()),
		"tokenpulse.request.duration":           10 * math.Exp(0.1*random.NormFloat64()),
		"tokenpulse.inter_token_latency.sketch": encoded(gaps...),
		"tokenpulse.inter_chunk_latency.sketch": nil, // standard detail
		"tokenpulse.inter_chunk_latency.max":    nil,
		"tokenpulse.output_token_rate":          nil,
		"tokenpulse.request_token_rate":         nil,
		"tokenpulse.stall.count":                nil, // zero
		"tokenpulse.stall.duration":             nil,
		"tokenpulse.chunk.count":                tokensPerRequest,
		"gen_ai.usage.output_tokens":            tokensPerRequest,
		"tokenpulse.token_count":                tokensPerRequest,
		"tokenpulse.tokens_per_chunk.sketch":    nil,
		"tokenpulse.tokens_per_chunk.max":       nil,
		"tokenpulse.time_to_first_audio":        nil, // text only
		"tokenpulse.audio.real_time_factor":     nil,
		"tokenpulse.time_per_token.from_0":      nil,
		"tokenpulse.time_per_token.from_10":     nil,
		"tokenpulse.time_per_token.from_100":    nil,
		"tokenpulse.time_per_token.from_1000":   nil,
		"tokenpulse.slo.met":                    nil, // no SLO by default
		"tokenpulse.slo.breached":               nil,
		"tokenpulse.slo.not_eligible":           nil,

		"tokenpulse.inter_audio_chunk_latency.sketch": nil,
	})
	for _, key := range []string{"p50", "p95", "p99"} { // written by the processor, ignored here
		attributes["tokenpulse.inter_token_latency."+key] = 0.02
	}
	return attributes
}

func typicalBatches(batches, spans int) (all []ptrace.Traces) {
	random := rand.New(rand.NewPCG(1, 2))
	for range batches {
		var attributes []map[string]any
		for i := range spans {
			attributes = append(attributes, typicalSpan(random, fmt.Sprint("model-", i%10)))
		}
		all = append(all, batch(attributes...))
	}
	return all
}

// published returns the sum of the counters of a family.
func (e *tokenSLI) published(b *testing.B, family string) (n float64) {
	b.Helper()
	for _, f := range e.families(b) {
		if f.GetName() == family {
			for _, m := range f.Metric {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func benchmarkConsume(b *testing.B, e *tokenSLI) {
	const spans = 100
	batches := typicalBatches(8, spans)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := e.consume(b.Context(), again(batches[i%len(batches)])); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	requests := float64(b.N) * spans
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/requests, "ns/request")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/requests/tokensPerRequest, "ns/token")
	if got := e.published(b, "tokenpulse_tokens_total"); got < requests*tokensPerRequest {
		b.Fatalf("%v tokens published, %v output tokens sent", got, requests*tokensPerRequest)
	}
}

// BenchmarkConsume records batches of 100 spans.
func BenchmarkConsume(b *testing.B) {
	e, _ := unstarted(b, nil)
	benchmarkConsume(b, e)
}

// BenchmarkCapacity records batches of spans of ten replicas without and with `capacity`.
func BenchmarkCapacity(b *testing.B) {
	for name, change := range map[string]func(*Config){"off": nil, "on": withCapacity} {
		b.Run(name, func(b *testing.B) {
			e, _ := unstarted(b, change)
			var attributes []map[string]any
			for i := range 100 {
				attributes = append(attributes, request("met", map[string]any{
					"service.instance.id": fmt.Sprint("vllm-", i%10), "tokenpulse.request.duration": 4.25, "tokenpulse.time_to_first_token": 0.25,
					"tokenpulse.time_per_output_token": 0.02,
				}))
			}
			traces := batch(attributes...)
			at := time.Now().Add(-time.Hour)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				at = at.Add(time.Millisecond)
				for _, resource := range again(traces).ResourceSpans().All() {
					span := resource.ScopeSpans().At(0).Spans().At(0)
					span.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
					span.SetEndTimestamp(pcommon.NewTimestampFromTime(at.Add(4250 * time.Millisecond)))
				}
				b.StartTimer()
				if err := e.consume(b.Context(), traces); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*100), "ns/span")
		})
	}
}

// BenchmarkVerdicts records batches of an engine's spans, by the verdict of three SLOs on each.
func BenchmarkVerdicts(b *testing.B) {
	const spans = 100
	slos := []any{"chat-ttft", "chat-tpot", "chat-duration"}
	for name, verdicts := range map[string]map[string]any{
		"none": {}, "met": {"tokenpulse.slo.met": slos},
		"breached": {
			"tokenpulse.slo.breached":           slos,
			"tokenpulse.slo.breached.indicator": []any{"time_to_first_token", "time_per_output_token", "request.duration"},
			"tokenpulse.slo.breached.threshold": []any{0.1, 0.01, 1.0},
			"tokenpulse.slo.verdict.chat-ttft":  "breached", "tokenpulse.slo.verdict.chat-tpot": "breached", "tokenpulse.slo.verdict.chat-duration": "breached",
		},
	} {
		b.Run(name, func(b *testing.B) {
			e, _ := unstarted(b, nil)
			var attributes []map[string]any
			for i := range spans {
				span := map[string]any{
					"gen_ai.latency.time_in_queue": 0.05, "gen_ai.latency.time_to_first_token": 0.25, "gen_ai.latency.e2e": 4.25,
					"gen_ai.latency.time_in_model_prefill": 0.15, "gen_ai.latency.time_in_model_decode": 4.0, "gen_ai.latency.time_in_model_inference": 4.15,
					"gen_ai.usage.prompt_tokens": 17, "gen_ai.usage.completion_tokens": 201, "gen_ai.request.id": fmt.Sprint("chatcmpl-", i),
					"tokenpulse.source": "vllm", "tokenpulse.vantage": "engine", "tokenpulse.outcome": "success",
					"tokenpulse.request.duration": 4.25, "tokenpulse.time_to_first_token": 0.25, "tokenpulse.time_per_output_token": 0.02,
					"tokenpulse.queue.duration": 0.05, "tokenpulse.prefill.duration": 0.15, "tokenpulse.decode.duration": 4.0, "tokenpulse.decode.share": 0.96,
					"gen_ai.usage.input_tokens": 17, "gen_ai.usage.output_tokens": 201,
				}
				maps.Copy(span, verdicts)
				attributes = append(attributes, span)
			}
			traces := batch(attributes...)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				again(traces)
				b.StartTimer()
				if err := e.consume(b.Context(), traces); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*spans), "ns/span")
			if got := e.published(b, "tokenpulse_slo_requests_total"); (got > 0) != (len(verdicts) > 0) {
				b.Fatalf("%v verdicts published", got)
			}
		})
	}
}

// BenchmarkConsumeWhileScraped does the same with ten scrapes per second.
func BenchmarkConsumeWhileScraped(b *testing.B) {
	e, _ := unstarted(b, nil)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				_, _ = e.rendered()
			}
		}
	}()
	benchmarkConsume(b, e)
	close(done)
	<-stopped
}

// BenchmarkScrape scrapes 2,000 series of one outcome with the default metrics.
func BenchmarkScrape(b *testing.B) {
	const series = 2000
	for name, accept := range map[string]string{"text": text, "openmetrics": openMetrics, "protobuf": protobuf} {
		b.Run(name, func(b *testing.B) {
			h := start(b, func(c *Config) {
				c.Server.WriteTimeout = 0
				c.Shared.Series.MaxSeries = 2 * series // one service opens half of them
			})
			random := rand.New(rand.NewPCG(1, 2))
			for i := range series {
				h.send(b, typicalSpan(random, fmt.Sprint("model-", i)))
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				body, _ := h.scrape(b, accept)
				b.ReportMetric(float64(len(body)), "B/scrape")
			}
		})
	}
}
