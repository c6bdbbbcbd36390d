// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package workload writes and reads traces of a workload that benchmark tools replay: when requests arrived, and how long their prompts
// and answers were.
//
// The format is that of the traces of Mooncake (https://github.com/kvcache-ai/Mooncake, FAST25-release): one request per line,
//
//	{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48]}
//
// with milliseconds since the first request, tokens, and an ID for each block of 512 tokens of the prompt. Two prompts share a prefix
// if their first IDs are equal. Write gives each block an ID of its own: no prompts share anything, and nothing follows from text.
package workload

import (
	"cmp"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/arrivals"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/synthetic"
)

// blockSize is the number of tokens of a prompt that one hash ID stands for. AIPerf rejects a request with more or fewer IDs than
// its prompt has blocks, the last of which may be shorter.
const blockSize = 512

// Limits of a request, in tokens. They bound the memory of a replay.
const (
	maxInput  = 1 << 24
	maxOutput = 1 << 20
)

// Request is a request of a trace.
type Request struct {
	// Timestamp is when it arrived, in milliseconds since the first one.
	Timestamp int64
	// Input and Output are tokens, at least 1.
	Input, Output uint32
}

// Trace is a workload, in the order of arrivals.
type Trace struct {
	Requests []Request
	// LeftOut counts requests that are no part of it.
	LeftOut [Reasons]int
	// Input and Cached are the tokens of all prompts, and those of them that came from a prefix cache.
	Input, Cached uint64
}

// Reason is why a request is no part of a trace.
type Reason int

// The reasons.
const (
	Mistaken Reason = iota // it failed by a mistake of its client
	Unsized                // the tokens of its prompt or its answer are unknown
	TooLong                // it has more tokens than a trace may have
	Reasons                // number of reasons
	none     = Reasons
)

// New returns the workload of requests in the order of their starts. Those that were cancelled or failed are part of it, with the tokens that they got: load is
// what arrives.
func New(all []arrivals.Request) *Trace {
	t := &Trace{Requests: make([]Request, 0, len(all))}
	var first int64
	for i := range all {
		q := &all[i]
		if reason := leaveOut(q); reason != none {
			t.LeftOut[reason]++
			continue
		}
		if len(t.Requests) == 0 {
			first = q.Start
		}
		after := time.Duration(q.Start - first).Round(time.Millisecond)
		// An answer without a token, such as one that a content filter ended, may have had some: no service takes a limit of 0.
		t.Requests = append(t.Requests, Request{Timestamp: after.Milliseconds(), Input: q.Prompt, Output: max(q.Output, 1)})
		t.Input, t.Cached = t.Input+uint64(q.Prompt), t.Cached+uint64(q.Cached)
	}
	slices.SortFunc(t.Requests, func(a, b Request) int {
		// Requests of one millisecond have this order, so that a replayed trace has it, too.
		return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.Input, b.Input), cmp.Compare(a.Output, b.Output))
	})
	return t
}

func leaveOut(q *arrivals.Request) Reason {
	switch {
	case q.Mistaken:
		return Mistaken
	case !q.Sized || q.Prompt == 0:
		return Unsized
	case q.Prompt > maxInput || q.Output > maxOutput:
		return TooLong
	}
	return none
}

// Duration returns the time from the first request to the last.
func (t *Trace) Duration() time.Duration {
	if len(t.Requests) == 0 {
		return 0
	}
	return time.Duration(t.Requests[len(t.Requests)-1].Timestamp) * time.Millisecond
}

// Arrivals yields the requests as those of synthetic streams.
func (t *Trace) Arrivals(yield func(synthetic.Arrival) bool) {
	for i := range t.Requests {
		r := &t.Requests[i]
		if !yield(synthetic.Arrival{At: time.Duration(r.Timestamp) * time.Millisecond, Input: int(r.Input), Output: int(r.Output)}) {
			return
		}
	}
}
