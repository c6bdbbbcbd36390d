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
		{"By ${by:text}", 6, 9, byEnginePanels()},
		{"Phases by ${by:text}", 8, 9, phasesByEngine()},
		{"Ours beside vLLM's", 6, 9, besideVLLM()},
		{"vLLM", 6, 9, vllmPanels()},
		{"Ours beside SGLang's", 6, 9, besideSGLang()},
		{"SGLang", 6, 9, sglangPanels()},
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
	table := rowsOf("Engines, latencies at ${percentile:text}", number, "queries.md#which-engine",
		"One row for each value of the chosen label, the slowest to first token on top.",
		columns...).sized(24, 8)
	return append([]panel{table}, each(latencies, func(l latency) panel {
		return show(lines(), l.name+" by ${by:text}", seconds, "queries.md#which-engine",
			l.about+" At the chosen percentile.",
			line(some.quantile("$percentile", l.histogram), "{{$by}}"))
	})...)
}

func phasesByEngine() (panels []panel) {
	for _, name := range []string{"queue", "prefill", "decode"} {
		panels = append(panels, show(lines(), fmt.Sprintf("Mean %s by ${by:text}", name), seconds, "queries.md#queue-prefill-decode-or-network",
			"Queue grows under load, prefill with longer prompts, decode with larger batches or a slower engine.",
			line(ofOutcome.where(fmt.Sprintf("phase=%q", name)).by("$by").mean(phase), "{{$by}}")))
	}
	return panels
}

// beside compares a latency as it is observed with that of an engine.
func beside(l latency, engine, histogram string) panel {
	return show(lines(), l.name+": observed and "+engine, seconds, engineSpans,
		"What the observer $vantage sees, beside what "+engine+" reports. The difference is network, gateways and queues before the engine.",
		line(ofOutcome.quantile("$percentile", l.histogram), "$vantage ${percentile:text}"),
		line(scraped.quantile("$percentile", histogram), engine+" ${percentile:text}"))
}

func inFlightBeside(engine, running, waiting string, width uint32) panel {
	return show(lines(), "In flight: observed and "+engine, number, engineSpans,
		"Mean number in flight by Little's law, beside what "+engine+" runs and holds in its queue. More observed than in the engine wait before it.",
		line(everyRequest.total(duration), "$vantage"),
		line(gauge("sum", running), engine+" running"),
		line(gauge("sum", waiting), engine+" waiting")).sized(width, 9)
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
	heatmap := func(title, histogram string) panel {
		return show(cells(tokenCount), title, tokenCount, engineSpans, "Requests per second in each bucket of lengths.",
			line(scraped.buckets(histogram), "{{le}}").asHeatmap())
	}
	return []panel{
		show(lines(), "vLLM scheduler", number, engineSpans,
			"Requests that run and that wait to be scheduled, by engine.",
			line(gauge("sum by (instance)", "vllm:num_requests_running"), "{{instance}} running"),
			line(gauge("sum by (instance)", "vllm:num_requests_waiting"), "{{instance}} waiting")),
		show(lines(), "vLLM KV cache in use", ratio, engineSpans,
			"Share of KV cache blocks in use. Near 100%, new requests wait and running ones are preempted.",
			line(gauge("max by (instance)", "vllm:kv_cache_usage_perc"), "{{instance}}")),
		show(lines(), "vLLM preemptions per second", number, engineSpans,
			"Running requests that lost their place in the KV cache. They stall, then prefill again.",
			line(scraped.by("instance").sum("vllm:num_preemptions_total"), "{{instance}}")),
		show(lines(), "vLLM prefix cache hits", ratio, engineSpans,
			"Share of looked-up prompt tokens that were in the prefix cache. A fall makes prefill slower.",
			line(hits+"\n/ ("+queries+" > 0)", "hits")),
		show(lines(), "vLLM mean time by phase", seconds, engineSpans,
			"Seconds that a request waited, prefilled and decoded, on average, as vLLM reports them.",
			line(scraped.mean("vllm:request_queue_time_seconds"), "queue"),
			line(scraped.mean("vllm:request_prefill_time_seconds"), "prefill"),
			line(scraped.mean("vllm:request_decode_time_seconds"), "decode")),
		show(lines(), "vLLM queue time", seconds, engineSpans,
			"Time that requests waited to be scheduled, as vLLM reports it.",
			scraped.percentiles("vllm:request_queue_time_seconds", false)...),
		show(lines(), "vLLM tokens per second", tokensPerSecond, engineSpans,
			"Prompt and generated tokens of the engines.",
			line(scraped.sum("vllm:prompt_tokens_total"), "prompt"), line(scraped.sum("vllm:generation_tokens_total"), "generated")),
		show(lines(), "vLLM tokens per step", tokenCount, engineSpans,
			"Tokens per step of the engine, prefill and decode together: the size of its batches.",
			line(scraped.quantile("$percentile", "vllm:iteration_tokens_total"), "${percentile:text}"),
			line(scraped.mean("vllm:iteration_tokens_total"), "mean")),
		show(lines(), "vLLM requests by finish reason", requestsPerSecond, engineSpans,
			"Finished requests per second. Aborted requests are missing from vLLM's latencies.",
			line(scraped.by("finished_reason").sum("vllm:request_success_total"), "{{finished_reason}}")),
		show(lines(), "vLLM prompt length", tokenCount, engineSpans,
			"Prompt tokens per request.",
			scraped.percentiles("vllm:request_prompt_tokens", false)...),
		show(lines(), "vLLM output length", tokenCount, engineSpans,
			"Generated tokens per request.",
			scraped.percentiles("vllm:request_generation_tokens", false)...),
		show(lines(), "vLLM limit on output", tokenCount, engineSpans,
			"The parameter max_tokens of the requests.",
			scraped.percentiles("vllm:request_params_max_tokens", false)...),
		heatmap("vLLM prompt length, heatmap", "vllm:request_prompt_tokens"),
		heatmap("vLLM output length, heatmap", "vllm:request_generation_tokens"),
	}
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
	return []panel{
		show(lines(), "SGLang scheduler", number, engineSpans,
			"Requests that run and that wait in the queue, by engine.",
			line(gauge("sum by (instance)", "sglang:num_running_reqs"), "{{instance}} running"),
			line(gauge("sum by (instance)", "sglang:num_queue_reqs"), "{{instance}} waiting")),
		show(lines(), "SGLang KV cache in use", ratio, engineSpans,
			"Share of the KV cache's tokens in use.",
			line(gauge("max by (instance)", "sglang:token_usage"), "{{instance}}")),
		show(lines(), "SGLang prefix cache hits", ratio, engineSpans,
			"Share of prompt tokens that were in the prefix cache, in the latest prefill.",
			line(gauge("avg by (instance)", "sglang:cache_hit_rate"), "{{instance}}")),
		show(lines(), "SGLang tokens per second", tokensPerSecond, engineSpans,
			"Prompt and generated tokens of the engines.",
			line(scraped.sum("sglang:prompt_tokens_total"), "prompt"),
			line(scraped.sum("sglang:generation_tokens_total"), "generated"),
			line(gauge("sum", "sglang:gen_throughput"), "generated, as SGLang reports it")),
	}
}
