// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"net/http"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// maxDuration bounds the durations that are believed.
const maxDuration = 7 * 24 * time.Hour

// setDuration reads a number of units. Numbers that are not durations are ignored.
func setDuration(d *optional.Value[time.Duration], v value, unit time.Duration) {
	if f, ok := v.float(); ok && f >= 0 && f <= float64(maxDuration)/float64(unit) {
		*d = optional.Of(time.Duration(f * float64(unit)))
	}
}

// usageTimings reads the times that Groq, GPUStack and Azure put into the usage.
func (t *Timings) usageTimings(usage value) {
	for name, v := range usage.members {
		switch string(name) {
		case "queue_time":
			setDuration(&t.Queue, v, time.Second)
		case "prompt_time":
			setDuration(&t.Prefill, v, time.Second)
		case "completion_time":
			setDuration(&t.Decode, v, time.Second)
		case "total_time":
			setDuration(&t.Total, v, time.Second)
		case "time_to_first_token_ms":
			setDuration(&t.FirstToken, v, time.Millisecond)
		case "latency_checkpoint":
			t.azure(v)
		}
	}
}

// readVLLMMetrics reads the metrics of a vLLM server. Its time to first token leaves out the queue.
func readVLLMMetrics(metrics value, o *Observation) {
	setDuration(&o.Timings.Queue, metrics.get("queue_time_ms"), time.Millisecond)
	setDuration(&o.Timings.Prefill, metrics.get("time_to_first_token_ms"), time.Millisecond)
	setDuration(&o.Timings.Decode, metrics.get("generation_time_ms"), time.Millisecond)
	speculative := metrics.get("speculative_decoding")
	setCount(&o.AcceptedTokens, speculative.get("num_accepted_draft_tokens"))
	setCount(&o.DraftTokens, speculative.get("num_draft_tokens"))
}

// llamaCpp reads the timings of a llama.cpp server.
func (t *Timings) llamaCpp(timings value) {
	setDuration(&t.Prefill, timings.get("prompt_ms"), time.Millisecond)
	setDuration(&t.Decode, timings.get("predicted_ms"), time.Millisecond)
}

// azure reads the latency checkpoint of Azure OpenAI. The times of its engine leave out
// what the service does before it.
func (t *Timings) azure(checkpoint value) {
	setDuration(&t.FirstToken, checkpoint.get("service_ttft_ms"), time.Millisecond)
	setDuration(&t.Total, checkpoint.get("service_ttlt_ms"), time.Millisecond)
}

// bedrockMetrics reads amazon-bedrock-invocationMetrics.
func (t *Timings) bedrockMetrics(metrics value) {
	setDuration(&t.FirstToken, metrics.get("firstByteLatency"), time.Millisecond)
	setDuration(&t.Total, metrics.get("invocationLatency"), time.Millisecond)
}

// readHeader reads what an answer's head reports. A body that reported the same has
// precedence.
func readHeader(h http.Header, o *Observation) {
	var t Timings
	number := func(name string) value { return value(strings.Trim(h.Get(name), `"`)) }
	setDuration(&t.Queue, number("X-Queue-Time"), time.Millisecond)
	setDuration(&t.Total, number("X-Total-Time"), time.Millisecond)
	setDuration(&t.Total, number("X-Metrics-E2e-Ms"), time.Millisecond)
	setDuration(&t.Total, number("X-Amzn-Bedrock-Invocation-Latency"), time.Millisecond)
	setDuration(&t.FirstToken, number("X-Metrics-Ttft-Ms"), time.Millisecond)
	t.merge(o.Timings)
	o.Timings = t

	var u Usage
	setCount(&u.Input, number("X-Prompt-Tokens"))
	setCount(&u.Output, number("X-Generated-Tokens"))
	setCount(&u.Input, number("X-Amzn-Bedrock-Input-Token-Count"))
	setCount(&u.Output, number("X-Amzn-Bedrock-Output-Token-Count"))
	if u.Output.Known && !o.Reported.Output.Known {
		o.UsageFinal = true
	}
	o.Reported.fill(u)

	if kind, _, _ := strings.Cut(h.Get("X-Amzn-Errortype"), ":"); kind != "" && o.Error == ErrorMessageOnly {
		o.Error = cut([]byte(kind))
	}
}

// merge takes over the durations that other knows.
func (t *Timings) merge(other Timings) {
	keep := func(mine *optional.Value[time.Duration], theirs optional.Value[time.Duration]) {
		if theirs.Known {
			*mine = theirs
		}
	}
	keep(&t.Queue, other.Queue)
	keep(&t.Prefill, other.Prefill)
	keep(&t.Decode, other.Decode)
	keep(&t.FirstToken, other.FirstToken)
	keep(&t.Total, other.Total)
}
