// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package arrivals keeps what load a pipeline's requests were: when each began, its size, who served it and how it was judged.
package arrivals

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Limits of a List.
const (
	// MaxRequests is that of the requests, of 32 bytes each.
	MaxRequests = 10_000_000
	// MaxReplicas is that of the replicas. Requests of further ones have no replica.
	MaxReplicas = 1000
)

// Request is one that arrived, whatever became of it.
type Request struct {
	// Start is a Unix time in nanoseconds.
	Start int64
	// Seconds is the time until its end.
	Seconds float32
	// Output and Prompt are tokens of the answer and of the prompt, of which Cached came from a prefix cache.
	Output, Prompt, Cached uint32
	// Replica is the number of the replica that served it, from 1. 0 means unknown.
	Replica uint16
	Vantage timeline.Vantage
	Verdict slo.Verdict
	// Sized means that the tokens are known.
	Sized bool
	// Mistaken means that it failed by a mistake of its client.
	Mistaken bool
}

// List holds requests of all vantages.
type List struct {
	// SLO is the one whose verdicts count.
	SLO string
	// Vantages counts the requests.
	Vantages timeline.Requests
	// Sampled are requests whose receiver counted them before it sampled their spans. The list has none of them: those that were sampled
	// are not all that arrived.
	Sampled int
	// Undated are requests without a start, and Dropped those beyond MaxRequests. The list has none of them.
	Undated, Dropped int

	limit    int
	requests []Request
	replicas map[string]uint16
}

// New returns an empty list. An SLO is needed only for verdicts.
func New(slo string) *List {
	return &List{SLO: slo, limit: MaxRequests, replicas: map[string]uint16{}}
}

// Add adds a request. It is a pipeline.Settings.Watch.
func (l *List) Add(r *series.Contribution, span ptrace.Span, resource pcommon.Map) {
	switch {
	case r.TraceOnly:
		return
	case keeper.IsAggregated(span):
		l.Sampled++
		return
	case span.StartTimestamp() == 0:
		l.Undated++
		return
	case len(l.requests) >= l.limit:
		l.Dropped++
		return
	}
	vantage, _ := timeline.ParseVantage(r.Vantage)
	l.Vantages[vantage]++
	q := Request{
		Start: span.StartTimestamp().AsTime().UnixNano(), Seconds: float32(r.Seconds),
		Vantage: vantage, Mistaken: r.Failure == optional.Of(slo.ClientMistake),
		Replica: l.replica(attributes.Replica(r.Vantage, func(name string) string { return attributes.Label(name, span.Attributes(), resource) })),
	}
	if size, ok := r.Size(); ok {
		q.Sized, q.Output, q.Prompt, q.Cached = true, tokens(size.Output), tokens(size.Prompt), tokens(min(size.Cached, size.Prompt))
	}
	for name, verdict := range r.Verdicts.All {
		if name == l.SLO {
			q.Verdict = verdict
		}
	}
	l.requests = append(l.requests, q)
}

func tokens(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }

func (l *List) replica(name string) uint16 {
	n, ok := l.replicas[name]
	if !ok && name != "" && len(l.replicas) < MaxReplicas {
		n = uint16(len(l.replicas) + 1)
		l.replicas[name] = n
	}
	return n
}

// Shown returns the requests of the vantage that stands for all, with those of unknown vantages, by their start. The list keeps no
// others.
func (l *List) Shown() ([]Request, timeline.Vantage) {
	shown := l.Vantages.Shown()
	l.requests = slices.DeleteFunc(l.requests, func(q Request) bool { return q.Vantage != shown && q.Vantage != timeline.VantageUnspecified })
	slices.SortFunc(l.requests, func(a, b Request) int { return cmp.Compare(a.Start, b.Start) })
	return l.requests, shown
}

// Others returns the number of requests that Shown leaves out.
func (l *List) Others() (n int) {
	shown := l.Vantages.Shown()
	for v, requests := range l.Vantages {
		if v := timeline.Vantage(v); v != shown && v != timeline.VantageUnspecified {
			n += int(requests)
		}
	}
	return n
}
