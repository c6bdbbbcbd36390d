// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package spanreader reads the attributes that the token_latency processor wrote on
// spans into requests for a series.Engine and an slo.Tracker.
package spanreader

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Tally counts the spans of one batch by result.
type Tally struct {
	// Requests were recorded. So were Traces, from root spans that are no request.
	Requests, Traces int64
	// Overflow of both were recorded in the overflow series.
	Overflow int64
	// Duplicates were recorded before.
	Duplicates int64
	// Ignored spans have none of the attributes that are recorded.
	Ignored int64
	// DroppedVerdicts count toward `all` only, because there were too many SLOs.
	DroppedVerdicts int64
	// Rejected counts attributes that were left out of a recorded request.
	Rejected [Reasons]int64
}

// Options select what is read.
type Options struct {
	// Dimensions are the attributes that distinguish series.
	Dimensions []string
	// Objectives are the SLOs whose verdicts are read wherever they are in a list. Of
	// others, the first slo.MaxSLOs are.
	Objectives slo.Names
	// Inspect is called with each span, and whether it carries latencies. It may be nil.
	Inspect func(span ptrace.Span, latencies bool)
	// Watch is called with each request that is no duplicate, after it was recorded. It may
	// be nil.
	Watch func(r *series.Request, span ptrace.Span)
}

// Read calls record with the request of every span that carries latencies, or the time to
// answer of its trace. The request is valid during the call only. Arrival is set to now.
func Read(traces ptrace.Traces, o *Options, now time.Time, record func(*series.Request) series.Recorded) (t Tally) {
	r := reader{dimensions: newDimensions(o.Dimensions), objectives: o.Objectives}
	resource := make([]string, len(o.Dimensions))
	r.request.Dimensions = make([]string, len(o.Dimensions))
	for _, resourceSpans := range traces.ResourceSpans().All() {
		clear(resource)
		for key, v := range resourceSpans.Resource().Attributes().All() {
			r.dimensions.read(resource, key, v)
		}
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			for _, span := range scopeSpans.Spans().All() {
				latencies := r.read(span, resource, now)
				if o.Inspect != nil {
					o.Inspect(span, latencies)
				}
				if !latencies {
					t.Ignored++
					continue
				}
				recorded := record(&r.request)
				t.add(recorded, &r)
				if o.Watch != nil && !recorded.Duplicate {
					o.Watch(&r.request, span)
				}
			}
		}
	}
	return t
}

func (t *Tally) add(recorded series.Recorded, r *reader) {
	if recorded.Duplicate {
		t.Duplicates++
		return
	}
	if r.request.TraceOnly {
		t.Traces++
	} else {
		t.Requests++
	}
	if recorded.Overflow {
		t.Overflow++
	}
	t.DroppedVerdicts += int64(recorded.DroppedVerdicts)
	for reason, n := range r.rejected {
		t.Rejected[reason] += n
	}
	// One attribute can serve two distributions and is rejected once.
	t.Rejected[MalformedSketch] += int64(min(recorded.MalformedSketches, r.sketches))
}
