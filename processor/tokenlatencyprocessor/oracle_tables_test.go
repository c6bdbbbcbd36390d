// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

// difference is a number of a source that differs from ours.
type difference struct {
	id, quantity string
	ours         any    // number, list of numbers, or nil for absent, in the case's unit
	because      string // a sentence or table row of docs/definitions.md
}

const (
	sentenceOneToken    = "A one-token answer has no TPOT: writing 0, as two serving engines do, lowers every percentile and makes a breached SLO look met."
	sentenceEnd         = "`t0` request start; `E` request end; `c1..ck` arrival times of chunks that carry at least one token."
	sentenceITL         = "| inter-token latency (ITL) | chunk i (i>=2) gives `n_i` samples of `(c_i - c_{i-1}) / n_i` | `k <= 1` |"
	sentenceTTFT        = "| time to first token (TTFT) | `c1 - t0`, any channel | no token seen |"
	sentenceTPOT        = "| time per output token (TPOT) | `(ck - c1) / (N - 1)` | `N <= 1`, or `k <= 1` |"
	sentenceRequestRate = "| request token rate (total TPS) | `N / (E - t0)` | `E = t0` |"
	sentenceNearestRank = "Quantile q of n samples is the smallest value whose cumulative count reaches `q*n` (nearest rank)"
	sentenceNumpy       = "Tools that interpolate linearly (numpy) differ in small samples."
	sentenceLoadGen     = "p99 of n samples is `sorted[floor(0.99 n)]`"
)

// differences lists every number of a source that differs from ours.
var differences = []difference{
	{"vllm-timing-1", "e2e", 6.0, sentenceEnd}, // the tool stops at the last token; our E is the usage frame
	{"vllm-doc-bundled", "itl_ms", []float64{40.0 / 3, 40.0 / 3, 40.0 / 3, 40}, sentenceITL},
	{"vllm-doc-bundled", "mean_itl_ms", 20.0, sentenceITL},
	{"etalon-req-2", "tpot", nil, sentenceOneToken},
	{"etalon-req-3", "ttft", nil, sentenceTTFT},
	{"etalon-req-3", "tpot", nil, sentenceTPOT},
	{"etalon-req-3", "output_tps", nil, sentenceRequestRate},
	{"etalon-req-3", "normalized", nil, sentenceRequestRate},
	{"distserve-2-one-token", "tpot", nil, sentenceOneToken},
	{"llmperf-1", "itl", 0.1, sentenceITL},
	// GuideLLM adds tenths in floating point: nine of them are less than 0.9.
	{"pct-1..10", "p90 cum_prob_searchsorted_left", 9.0, sentenceNearestRank},
	{"infperf-pct-0-100", "p1", 0.0, sentenceNumpy},
	{"infperf-pct-0-100", "p90", 100.0, sentenceNumpy},
	{"infperf-pct-0-100", "p99", 100.0, sentenceNumpy},
}

// conventions maps each convention of percentiles to the sentence that explains its
// difference. The convention without a sentence is ours.
var conventions = map[string]string{
	"cum_prob_searchsorted_left":    "",
	"numpy_linear":                  sentenceNumpy,
	"numpy_lower":                   sentenceNearestRank,
	"numpy_nearest":                 sentenceNearestRank,
	"mlperf_loadgen_index_floor_np": sentenceLoadGen,
}

const (
	reasonWindow      = "throughput or duration of a whole benchmark, not of a request"
	reasonJudged      = "which requests are good: see TestOracleGoodput_CountsTheSameRequestsAsOtherTools"
	reasonGoodput     = "good requests per second: a rate of tokenpulse.slo.requests, not of a request"
	reasonTokens      = "tokens of good requests per second: goodput in docs/definitions.md counts requests"
	reasonConcurrency = "how many requests overlap"
	reasonTracking    = "which requests a benchmark counts"
	reasonStopping    = "MLPerf's early stopping: how many samples a verdict needs"
	reasonLongest     = "mean of the longest tenth of the gaps: not a quantity of docs/definitions.md"
)

// notOneRequest lists the cases that do not concern the latency of one request.
var notOneRequest = map[string]string{
	"aiperf-duration-1":              reasonWindow,
	"aiperf-tps-1":                   reasonWindow,
	"aiperf-tps-2":                   reasonWindow,
	"aiperf-tps-3-zero-duration":     reasonWindow,
	"aiperf-rps-1":                   reasonWindow,
	"aiperf-goodput-1":               reasonGoodput,
	"aiperf-goodput-2":               reasonGoodput,
	"aiperf-goodcount-1":             reasonJudged,
	"aiperf-goodcount-2-no-slo":      reasonJudged,
	"infperf-token-goodput":          reasonTokens,
	"vllm-concurrency-1":             reasonConcurrency,
	"vllm-concurrency-2":             reasonConcurrency,
	"vllm-concurrency-3":             reasonConcurrency,
	"vllm-concurrency-4":             reasonConcurrency,
	"vllm-concurrency-5":             reasonConcurrency,
	"mlcendpoints-issued-after-stop": reasonTracking,
	"mlcendpoints-warmup":            reasonTracking,
	"mlcendpoints-loadgen-window":    reasonTracking,
	"mlcendpoints-es-1":              reasonStopping,
	"mlcendpoints-es-2":              reasonStopping,
	"mlcendpoints-es-3":              reasonStopping,
	"mlcendpoints-es-4":              reasonStopping,
	"mlcendpoints-es-5":              reasonStopping,
	"mlcendpoints-es-exec-64-90":     reasonStopping,
	"mlcendpoints-es-exec-662-99":    reasonStopping,
	"mlcendpoints-es-exec-1000-90":   reasonStopping,
	"mlcendpoints-es-exec-1000-99":   reasonStopping,
	"mlcendpoints-es-exec-24576-99":  reasonStopping,
	"mooncake-tbt-1":                 reasonLongest,
}

// notOurs lists quantities that are not the latency of a request, in cases that also
// state latencies. They are not compared.
var notOurs = map[string]string{
	"good":                    reasonJudged,
	"throughput":              reasonWindow,
	"duration":                reasonWindow,
	"benchmark_duration":      reasonWindow,
	"request_throughput":      reasonWindow,
	"output_token_throughput": reasonWindow,
	"min_request_timestamp":   reasonWindow,
	"max_response_timestamp":  reasonWindow,
	"total_isl":               "a count of input tokens, not a latency",
	"input_sequence_length":   "a count of input tokens, not a latency",
	"output_token_count":      "a count of tokens by channel, not a latency",
	"reasoning_token_count":   "a count of tokens by channel, not a latency",
	"total_output_tokens":     "a count of tokens by channel, not a latency",
	"total_reasoning_tokens":  "a count of tokens by channel, not a latency",
	"sum_sq":                  "a sketch does not keep squares",
	"total_missed":            "compared as the ratio of missed and total",
}

// sameAs maps names of one tool to the usual name of the quantity.
var sameAs = map[string]map[string]string{
	// AIPerf's ITL is one number per request, the TPOT of docs/definitions.md.
	"aiperf": {"itl": "tpot", "inter_token_latency": "tpot", "full_response_itl": "tpot"},
	// Etalon's output rate divides by the whole duration.
	"etalon": {"output_tps": "request_token_rate"},
	// LLMPerf's ITL is one number per stream, the mean.
	"llmperf": {"itl": "mean_itl"},
	// vLLM's documentation has the unit in the name, which is the case's unit.
	"vllm": {"ttft_ms": "ttft", "itl_ms": "itl", "mean_itl_ms": "mean_itl", "tpot_ms": "tpot", "e2e_ms": "e2e"},
}
