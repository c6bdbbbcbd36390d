// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import "github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"

// vllmBench reads what `vllm bench serve --save-result --save-detailed` writes. The tool takes the time of each message with
// choices: the frame with the role, and one with a finish reason or a special token, count as tokens.
var vllmBench = &benchFormat{
	tool:      "vllm bench",
	noDetails: "the result has no requests; run vllm bench serve with --save-detailed",
	failed:    stream.Frames,
	stream:    func(_ *benchRun, _ int, s *stream.Stream) { s.Arrivals = stream.Frames },
}

var vllmGaps = []Gap{
	{"which frames hold no token, such as the role and the finish reason", "they count as chunks: time to first token is a lower bound, inter-token latency and stalls are estimates"},
	{"the tokens of a chunk", "each counts as one, so inter-token latency is that between chunks; time per output token divides by the tokens of the answer"},
	{"the end of a request, in older versions", "it ends with the last chunk"},
	{"tokens and duration of failed requests", "they have none"},
	{"the time zone of its date, nor start_times in older versions", "times of day may be off by hours; without start_times all requests start at once"},
	{"the queue", "prefill is time to first token"},
}
