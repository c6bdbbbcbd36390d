package tokenlatencyprocessor

// difference is a number that a source gives and we do not.
type difference struct {
	id, quantity string
	ours         any    // number, list of numbers, or nil for absent; in the case's unit
	because      string // verbatim in definitions.md
}

const (
	sentenceOneToken    = "A one-token answer has no TPOT; writing 0 (as two serving engines do) drags every percentile down and makes an SLO pass that nobody met."
	sentenceEnd         = "`t0` request start; `E` request end; `c1..ck` arrival times of chunks that carry at least one token;"
	sentenceITL         = "| inter-token latency (ITL) | chunk i (i>=2) gives `n_i` samples of `(c_i - c_{i-1}) / n_i` | s | `k <= 1` |"
	sentenceTTFT        = "| time to first token (TTFT) | `c1 - t0`, any channel | s | no token seen |"
	sentenceTPOT        = "| time per output token (TPOT) | `(ck - c1) / (N - 1)` | s | `N <= 1`, or `k <= 1` |"
	sentenceRequestRate = "| request token rate (total TPS) | `N / (E - t0)` | {token}/s | `E = t0` |"
	sentenceNearestRank = "Quantile q of n samples is the smallest value whose cumulative count reaches `q*n` (nearest rank)"
	sentenceNumpy       = "Tools that interpolate linearly (numpy) differ in small samples; tests compare to both, and say which."
	sentenceLoadGen     = "p99 of n samples is `sorted[floor(0.99 n)]`"
)

// differences lists every number of a source that is not ours.
var differences = []difference{
	{"vllm-timing-1", "e2e", 6.0, sentenceEnd}, // the tool stops its clock at the last token, our E is the usage frame
	{"vllm-doc-bundled", "itl_ms", []float64{40.0 / 3, 40.0 / 3, 40.0 / 3, 40}, sentenceITL},
	{"vllm-doc-bundled", "mean_itl_ms", 20.0, sentenceITL},
	{"etalon-req-2", "tpot", nil, sentenceOneToken},
	{"etalon-req-3", "ttft", nil, sentenceTTFT},
	{"etalon-req-3", "tpot", nil, sentenceTPOT},
	{"etalon-req-3", "output_tps", nil, sentenceRequestRate},
	{"etalon-req-3", "normalized", nil, sentenceRequestRate},
	{"distserve-2-one-token", "tpot", nil, sentenceOneToken},
	{"llmperf-1", "itl", 0.1, sentenceITL},
	// GuideLLM adds up tenths in floating point: nine of them stay under 0.9.
	{"pct-1..10", "p90 cum_prob_searchsorted_left", 9.0, sentenceNearestRank},
	{"infperf-pct-0-100", "p1", 0.0, sentenceNumpy},
	{"infperf-pct-0-100", "p90", 100.0, sentenceNumpy},
	{"infperf-pct-0-100", "p99", 100.0, sentenceNumpy},
}

// conventions lists what the columns of the cases about percentiles are. The one
// without a sentence is ours.
var conventions = map[string]string{
	"cum_prob_searchsorted_left":    "",
	"numpy_linear":                  sentenceNumpy,
	"numpy_lower":                   sentenceNearestRank,
	"numpy_nearest":                 sentenceNearestRank,
	"mlperf_loadgen_index_floor_np": sentenceLoadGen,
}

const (
	reasonWindow      = "across requests: throughput or extent of a benchmark, not of a request"
	reasonJudged      = "which requests are good: see TestOracleGoodput"
	reasonGoodput     = "requests per second that are good: a rate of tokenpulse.slo.requests, not of a request"
	reasonTokens      = "tokens of good requests per second: goodput counts requests, says definitions.md"
	reasonConcurrency = "across requests: how many overlap"
	reasonTracking    = "which requests a benchmark counts"
	reasonStopping    = "MLPerf's early stopping: how many samples a verdict needs"
	reasonLongest     = "mean of the longest tenth of the gaps: no quantity of definitions.md"
)

// notOneRequest lists the cases that ask nothing about the latency of a request.
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

// notOurs lists what sources state beside the latency of a request, in cases that
// run for the rest.
var notOurs = map[string]string{
	"error":                   "a remark on why a value is absent",
	"good":                    reasonJudged,
	"throughput":              reasonWindow,
	"duration":                reasonWindow,
	"benchmark_duration":      reasonWindow,
	"request_throughput":      reasonWindow,
	"output_token_throughput": reasonWindow,
	"min_request_timestamp":   reasonWindow,
	"max_response_timestamp":  reasonWindow,
	"total_isl":               "input tokens are no latency",
	"input_sequence_length":   "input tokens are no latency",
	"output_token_count":      "the split of output tokens is no latency",
	"reasoning_token_count":   "the split of output tokens is no latency",
	"total_output_tokens":     "the split of output tokens is no latency",
	"total_reasoning_tokens":  "the split of output tokens is no latency",
	"sum_sq":                  "no sketch keeps squares",
	"total_missed":            "the index is the ratio of missed and total, and missed is checked by it",
}

// sameAs maps names of one tool to the name that most give the same quantity.
var sameAs = map[string]map[string]string{
	// "AIPerf: ITL is one number per request: this is TPOT here", says definitions.md.
	"aiperf": {"itl": "tpot", "inter_token_latency": "tpot", "full_response_itl": "tpot"},
	// Its request rate divides by the whole duration.
	"etalon": {"output_tps": "request_token_rate"},
	// One number for a stream is the mean.
	"llmperf": {"itl": "mean_itl"},
	// Its documentation is in milliseconds, as the case's unit is.
	"vllm": {"ttft_ms": "ttft", "itl_ms": "itl", "mean_itl_ms": "mean_itl", "tpot_ms": "tpot", "e2e_ms": "e2e"},
}
