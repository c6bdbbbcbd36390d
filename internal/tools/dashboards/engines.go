// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// engines compares engines with each other, and what users see with what vLLM and SGLang
// report of themselves.
var engines = board{
	file: "engines", title: "engines",
	about: "Which engine is slow, and why: latencies and phases by engine, beside the engines' own metrics where Prometheus scrapes them. " +
		"To compare engines, add server.address to the dimensions of token_sli.",
	variables: slices.Concat(filters, []variable{
		outcome, percentile, splitBy(byEngine),
		anyOf("engine", "Scraped engine", "Instances of vLLM and SGLang that Prometheus scrapes",
			`label_values({__name__=~"vllm:num_requests_running|sglang:num_running_reqs"}, instance)`, allValues),
	}),
	rows: []row{
		{"By ${by:text}", byEnginePanels()},
		{"Phases by ${by:text}", phasesByEngine()},
		{"Ours beside vLLM's", besideVLLM()},
		{"vLLM", vllmPanels()},
		{"Ours beside SGLang's", besideSGLang()},
		{"SGLang", sglangPanels()},
	},
}

// scraped selects the engines that Prometheus scrapes.
var scraped = selection{matchers: []string{`instance=~"$engine"`}, window: perInterval}

const engineSpans = "grafana.md#the-engines-own-metrics"

func byEnginePanels() []panel {
	every, some := everyRequest.by("$by"), ofOutcome.by("$by")
	var columns []column
	for _, l := range latencies {
		columns = append(columns, column{l.short, seconds, some.over(perRange).quantile("$percentile", l.histogram)})
	}
	columns = append(columns,
		column{"Requests/s", requestsPerSecond, every.over(perRange).sum(requests)},
		column{"In flight", number, every.over(perRange).total(duration)},
		column{"Output tokens/s", tokensPerSecond, every.where(`type="output"`).over(perRange).sum(tokens)},
		column{"Failed", ratio, every.over(perRange).failed()},
	)
	kind, targets := rows(columns...)
	panels := []panel{{
		title: "Engines, latencies at ${percentile:text}", about: "One row for each value of the chosen label, the slowest to first token on top.",
		docs: "queries.md#which-engine", unit: number, width: 24, height: 8, kind: kind, targets: targets,
	}}
	for _, l := range latencies {
		panels = append(panels, panel{
			title: l.name + " by ${by:text}", about: l.about + " At the chosen percentile.", docs: "queries.md#which-engine",
			unit: seconds, width: 6, height: 9, kind: lines(),
			targets: []target{{expression: some.quantile("$percentile", l.histogram), legend: "{{$by}}"}},
		})
	}
	return panels
}

func phasesByEngine() (panels []panel) {
	for _, name := range []string{"queue", "prefill", "decode"} {
		panels = append(panels, panel{
			title: fmt.Sprintf("Mean %s by ${by:text}", name), docs: "queries.md#queue-prefill-decode-or-network", unit: seconds, width: 8, height: 9, kind: lines(),
			about:   "Queue grows under load, prefill with longer prompts, decode with larger batches or a slower engine.",
			targets: []target{{expression: ofOutcome.where(fmt.Sprintf("phase=%q", name)).by("$by").mean(phase), legend: "{{$by}}"}},
		})
	}
	return panels
}

// beside compares a latency as it is observed with that of an engine.
func beside(l latency, engine, histogram string) panel {
	return panel{
		title: l.name + ": observed and " + engine, docs: engineSpans, unit: seconds, width: 6, height: 9, kind: lines(),
		about: "What the observer $vantage sees, beside what " + engine + " reports. The difference is network, gateways and queues before the engine.",
		targets: []target{
			{expression: ofOutcome.quantile("$percentile", l.histogram), legend: "$vantage ${percentile:text}"},
			{expression: scraped.quantile("$percentile", histogram), legend: engine + " ${percentile:text}"},
		},
	}
}

func inFlightBeside(engine, running, waiting string, width uint32) panel {
	return panel{
		title: "In flight: observed and " + engine, docs: engineSpans, unit: number, width: width, height: 9, kind: lines(),
		about: "Mean number in flight by Little's law, beside what " + engine + " runs and holds in its queue. More observed than in the engine wait before it.",
		targets: []target{
			{expression: everyRequest.total(duration), legend: "$vantage"},
			{expression: gauge("sum", running), legend: engine + " running"},
			{expression: gauge("sum", waiting), legend: engine + " waiting"},
		},
	}
}

// gauge aggregates a gauge of the scraped engines, such as by "sum by (instance)".
func gauge(aggregation, metric string) string {
	return aggregation + " (" + scraped.series(metric) + ")"
}

func besideVLLM() []panel {
	return []panel{
		beside(latencies[0], "vLLM", "vllm:time_to_first_token_seconds"),
		beside(latencies[1], "vLLM", "vllm:request_time_per_output_token_seconds"),
		beside(latencies[2], "vLLM", "vllm:inter_token_latency_seconds"),
		beside(latencies[3], "vLLM", "vllm:e2e_request_latency_seconds"),
		inFlightBeside("vLLM", "vllm:num_requests_running", "vllm:num_requests_waiting", 24),
	}
}

func vllmPanels() []panel {
	hits, queries := scraped.sum("vllm:prefix_cache_hits_total"), scraped.sum("vllm:prefix_cache_queries_total")
	panels := []panel{
		{
			title: "vLLM scheduler", about: "Requests that run and that wait to be scheduled, by engine.", unit: number,
			targets: []target{
				{expression: gauge("sum by (instance)", "vllm:num_requests_running"), legend: "{{instance}} running"},
				{expression: gauge("sum by (instance)", "vllm:num_requests_waiting"), legend: "{{instance}} waiting"},
			},
		},
		{
			title: "vLLM KV cache in use", about: "Share of KV cache blocks in use. Near 100%, new requests wait and running ones are preempted.", unit: ratio,
			targets: []target{{expression: gauge("max by (instance)", "vllm:kv_cache_usage_perc"), legend: "{{instance}}"}},
		},
		{
			title: "vLLM preemptions per second", about: "Running requests that lost their place in the KV cache. They stall, then prefill again.", unit: number,
			targets: []target{{expression: scraped.by("instance").sum("vllm:num_preemptions_total"), legend: "{{instance}}"}},
		},
		{
			title: "vLLM prefix cache hits", about: "Share of looked-up prompt tokens that were in the prefix cache. A fall makes prefill slower.", unit: ratio,
			targets: []target{{expression: hits + "\n/ (" + queries + " > 0)", legend: "hits"}},
		},
		{
			title: "vLLM mean time by phase", about: "Seconds that a request waited, prefilled and decoded, on average, as vLLM reports them.", unit: seconds,
			targets: []target{
				{expression: scraped.mean("vllm:request_queue_time_seconds"), legend: "queue"},
				{expression: scraped.mean("vllm:request_prefill_time_seconds"), legend: "prefill"},
				{expression: scraped.mean("vllm:request_decode_time_seconds"), legend: "decode"},
			},
		},
		{
			title: "vLLM queue time", about: "Time that requests waited to be scheduled, as vLLM reports it.", unit: seconds,
			targets: scraped.percentiles("vllm:request_queue_time_seconds", false),
		},
		{
			title: "vLLM tokens per second", about: "Prompt and generated tokens of the engines.", unit: tokensPerSecond,
			targets: []target{
				{expression: scraped.sum("vllm:prompt_tokens_total"), legend: "prompt"},
				{expression: scraped.sum("vllm:generation_tokens_total"), legend: "generated"},
			},
		},
		{
			title: "vLLM tokens per step", about: "Tokens per step of the engine, prefill and decode together: the size of its batches.", unit: tokenCount,
			targets: []target{
				{expression: scraped.quantile("$percentile", "vllm:iteration_tokens_total"), legend: "${percentile:text}"},
				{expression: scraped.mean("vllm:iteration_tokens_total"), legend: "mean"},
			},
		},
		{
			title: "vLLM requests by finish reason", about: "Finished requests per second. Aborted requests are missing from vLLM's latencies.", unit: requestsPerSecond,
			targets: []target{{expression: scraped.by("finished_reason").sum("vllm:request_success_total"), legend: "{{finished_reason}}"}},
		},
		{
			title: "vLLM prompt length", about: "Prompt tokens per request.", unit: tokenCount,
			targets: scraped.percentiles("vllm:request_prompt_tokens", false),
		},
		{
			title: "vLLM output length", about: "Generated tokens per request.", unit: tokenCount,
			targets: scraped.percentiles("vllm:request_generation_tokens", false),
		},
		{
			title: "vLLM limit on output", about: "The parameter max_tokens of the requests.", unit: tokenCount,
			targets: scraped.percentiles("vllm:request_params_max_tokens", false),
		},
	}
	for _, length := range [][2]string{{"vLLM prompt length, heatmap", "vllm:request_prompt_tokens"}, {"vLLM output length, heatmap", "vllm:request_generation_tokens"}} {
		panels = append(panels, panel{
			title: length[0], about: "Requests per second in each bucket of lengths.", unit: tokenCount, kind: cells(tokenCount),
			targets: []target{{expression: scraped.buckets(length[1]), legend: "{{le}}", format: "heatmap"}},
		})
	}
	return ofEngine(panels)
}

func besideSGLang() []panel {
	return []panel{
		beside(latencies[0], "SGLang", "sglang:time_to_first_token_seconds"),
		beside(latencies[2], "SGLang", "sglang:inter_token_latency_seconds"),
		beside(latencies[3], "SGLang", "sglang:e2e_request_latency_seconds"),
		inFlightBeside("SGLang", "sglang:num_running_reqs", "sglang:num_queue_reqs", 6),
	}
}

func sglangPanels() []panel {
	return ofEngine([]panel{
		{
			title: "SGLang scheduler", about: "Requests that run and that wait in the queue, by engine.", unit: number,
			targets: []target{
				{expression: gauge("sum by (instance)", "sglang:num_running_reqs"), legend: "{{instance}} running"},
				{expression: gauge("sum by (instance)", "sglang:num_queue_reqs"), legend: "{{instance}} waiting"},
			},
		},
		{
			title: "SGLang KV cache in use", about: "Share of the KV cache's tokens in use.", unit: ratio,
			targets: []target{{expression: gauge("max by (instance)", "sglang:token_usage"), legend: "{{instance}}"}},
		},
		{
			title: "SGLang prefix cache hits", about: "Share of prompt tokens that were in the prefix cache, in the latest prefill.", unit: ratio,
			targets: []target{{expression: gauge("avg by (instance)", "sglang:cache_hit_rate"), legend: "{{instance}}"}},
		},
		{
			title: "SGLang tokens per second", about: "Prompt and generated tokens of the engines.", unit: tokensPerSecond,
			targets: []target{
				{expression: scraped.sum("sglang:prompt_tokens_total"), legend: "prompt"},
				{expression: scraped.sum("sglang:generation_tokens_total"), legend: "generated"},
				{expression: gauge("sum", "sglang:gen_throughput"), legend: "generated, as SGLang reports it"},
			},
		},
	})
}

// ofEngine completes panels on an engine's own metrics.
func ofEngine(panels []panel) []panel {
	for i := range panels {
		p := &panels[i]
		p.docs, p.width, p.height = engineSpans, 6, 9
		if p.kind == nil {
			p.kind = lines()
		}
	}
	return panels
}
