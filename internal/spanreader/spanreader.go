// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package spanreader reads finished requests, for a series.Engine and an slo.Tracker, from the attributes that
// the token_latency processor wrote on spans.
package spanreader

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Tally counts the requests of one batch by result.
type Tally struct {
	// Requests is the number of recorded requests. Traces is that of recorded root spans that are
	// not requests.
	Requests, Traces int64
	// Overflow is the number of both that went to the overflow series.
	Overflow int64
	// Duplicates is the number of requests that were recorded before, and not again.
	Duplicates int64
	// Aggregated is the number of requests that their receiver adds to series itself.
	Aggregated int64
	// Ignored is the number of spans without any attribute to record.
	Ignored int64
	// DroppedVerdicts count toward `all` only, because there were too many SLOs.
	DroppedVerdicts int64
	// Rejected counts attributes that were left out of a recorded request.
	Rejected [series.Reasons]int64
}

// Options select what is read.
type Options struct {
	// Dimensions are the attributes that distinguish series.
	Dimensions Dimensions
	// Objectives are the SLOs whose verdicts are read wherever they are in a list. Of
	// others, the first slo.MaxSLOs are.
	Objectives slo.Names
	// Inspect is called with each span, and whether a processor wrote latencies, verdicts or the reasons for
	// missing ones on it. It may be nil.
	Inspect func(span ptrace.Span, processed bool)
	// Watch is called with each request that is no duplicate, after it was recorded, and with
	// each aggregated one, also if its span is delivered again. It may be nil.
	Watch func(r *series.Contribution, span ptrace.Span, resource pcommon.Map)
}

// Read calls record with the request of every span that carries latencies, or the time to
// answer of its trace. The request is valid during the call only. Arrival is set to now.
func Read(traces ptrace.Traces, o *Options, now time.Time, record func(*series.Contribution) series.Recorded) (t Tally) {
	r := reader{Options: o, values: o.Dimensions.Values()}
	r.request = o.Dimensions.Request(r.values)
	r.request.Verdicts.Objectives = o.Objectives
	resource := o.Dimensions.Values()
	for _, resourceSpans := range traces.ResourceSpans().All() {
		o.Dimensions.Clear(resource)
		for key, v := range resourceSpans.Resource().Attributes().All() {
			o.Dimensions.Read(resource, key, v)
		}
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			for _, span := range scopeSpans.Spans().All() {
				latencies := r.read(span, resource, now)
				if o.Inspect != nil {
					o.Inspect(span, r.processed || r.rolledUp)
				}
				switch {
				case !latencies:
					t.Ignored++
				case r.aggregated:
					t.Aggregated++
					o.watch(&r.request, span, resourceSpans)
				default:
					recorded := record(&r.request)
					t.Add(recorded, &r.request)
					if !recorded.Duplicate {
						o.watch(&r.request, span, resourceSpans)
					}
				}
			}
		}
	}
	return t
}

func (o *Options) watch(r *series.Contribution, span ptrace.Span, of ptrace.ResourceSpans) {
	if o.Watch != nil {
		o.Watch(r, span, of.Resource().Attributes())
	}
}

// Add counts a request by the result of recording it.
func (t *Tally) Add(recorded series.Recorded, r *series.Contribution) {
	if recorded.Duplicate {
		t.Duplicates++
		return
	}
	if r.TraceOnly {
		t.Traces++
	} else {
		t.Requests++
	}
	if recorded.Overflow {
		t.Overflow++
	}
	t.DroppedVerdicts += int64(recorded.DroppedVerdicts)
	for reason, n := range r.Rejected {
		t.Rejected[reason] += n
	}
	t.Rejected[series.MalformedSketch] += int64(recorded.MalformedSketches)
}

// Merge adds the counts of another tally.
func (t *Tally) Merge(other *Tally) {
	t.Requests += other.Requests
	t.Traces += other.Traces
	t.Overflow += other.Overflow
	t.Duplicates += other.Duplicates
	t.Aggregated += other.Aggregated
	t.Ignored += other.Ignored
	t.DroppedVerdicts += other.DroppedVerdicts
	for reason, n := range other.Rejected {
		t.Rejected[reason] += n
	}
}
