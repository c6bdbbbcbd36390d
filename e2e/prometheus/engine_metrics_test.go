// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// standInEngine stands in for an inference server: it serves metrics with the names,
// types and labels of vLLM or SGLang. Each scrape finds 20 more requests. The values are
// made up; only panels on the engines' own metrics read them.
type standInEngine struct {
	gauges   map[string]float64
	counters map[string]float64 // increase per scrape
	// histograms holds the value of each request.
	histograms map[string]float64
	// byReason holds the increase per scrape of a counter with a label.
	byReason map[string]float64
}

var standInVLLM = standInEngine{
	gauges: map[string]float64{"vllm:num_requests_running": 6, "vllm:num_requests_waiting": 2, "vllm:kv_cache_usage_perc": 0.4},
	counters: map[string]float64{
		"vllm:prompt_tokens_total": 20_000, "vllm:generation_tokens_total": 820, "vllm:num_preemptions_total": 1,
		"vllm:prefix_cache_queries_total": 20_000, "vllm:prefix_cache_hits_total": 5_000,
	},
	histograms: map[string]float64{
		"vllm:time_to_first_token_seconds": 1.6, "vllm:inter_token_latency_seconds": 0.05, "vllm:e2e_request_latency_seconds": 3.6,
		"vllm:request_time_per_output_token_seconds": 0.05, "vllm:request_queue_time_seconds": 0.4, "vllm:request_prefill_time_seconds": 1.2, "vllm:request_decode_time_seconds": 2,
		"vllm:iteration_tokens_total": 64, "vllm:request_prompt_tokens": 1000, "vllm:request_generation_tokens": 41,
		"vllm:request_params_max_tokens": 256,
	},
	byReason: map[string]float64{"stop": 18, "length": 1, "abort": 1},
}

var standInSGLang = standInEngine{
	gauges: map[string]float64{
		"sglang:num_running_reqs": 3, "sglang:num_queue_reqs": 1, "sglang:token_usage": 0.28, "sglang:cache_hit_rate": 0.1, "sglang:gen_throughput": 86.5,
	},
	counters: map[string]float64{"sglang:prompt_tokens_total": 20_000, "sglang:generation_tokens_total": 820},
	histograms: map[string]float64{
		"sglang:time_to_first_token_seconds": 1.1, "sglang:inter_token_latency_seconds": 0.02, "sglang:e2e_request_latency_seconds": 2.2,
	},
}

// serve returns the address of the stand-in.
func (e standInEngine) serve(t *testing.T, labels client.Labels) string {
	t.Helper()
	registry := client.NewRegistry()
	metrics := client.WrapRegistererWith(labels, registry)
	for name, value := range e.gauges {
		gauge := client.NewGauge(client.GaugeOpts{Name: name})
		gauge.Set(value)
		metrics.MustRegister(gauge)
	}
	var onScrape []func()
	count := func(counter client.Counter, increase float64) {
		onScrape = append(onScrape, func() { counter.Add(increase) })
	}
	for name, increase := range e.counters {
		counter := client.NewCounter(client.CounterOpts{Name: name})
		metrics.MustRegister(counter)
		count(counter, increase)
	}
	if e.byReason != nil {
		finished := client.NewCounterVec(client.CounterOpts{Name: "vllm:request_success_total"}, []string{"finished_reason"})
		metrics.MustRegister(finished)
		for reason, increase := range e.byReason {
			count(finished.WithLabelValues(reason), increase)
		}
	}
	for name, value := range e.histograms {
		// Powers of 2 around the value.
		histogram := client.NewHistogram(client.HistogramOpts{Name: name, Buckets: client.ExponentialBuckets(math.Ldexp(value, -4)*1.3, 2, 9)})
		metrics.MustRegister(histogram)
		onScrape = append(onScrape, func() {
			for range 20 {
				histogram.Observe(value)
			}
		})
	}
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, do := range onScrape {
			do()
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}
