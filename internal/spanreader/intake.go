// Package spanreader reads what the token_latency processor wrote on spans and hands
// it to an series.Engine. It reads an attribute once and keeps none.
package spanreader

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Tally tells what became of the spans of one batch.
type Tally struct {
	// Requests were recorded, Overflow of them in the overflow series.
	Requests, Overflow int64
	// Ignored spans carry nothing of the token_latency processor.
	Ignored int64
	// DroppedVerdicts have no count of their own: there were too many objectives.
	DroppedVerdicts int64
	// Rejected counts attributes that were left out of a recorded request.
	Rejected [Reasons]int64
}

// Record adds every span that carries latencies to the engine's series. The
// dimensions are those the engine was made with.
func Record(traces ptrace.Traces, engine *series.Engine, dimensions []string, now time.Time) Tally {
	return record(traces, engine, reader{dimensions: newDimensions(dimensions)}, now)
}

// RecordVerdicts is Record for an engine that only has to know of objectives: its
// series hold no latency, and are small.
func RecordVerdicts(traces ptrace.Traces, engine *series.Engine, dimensions []string, now time.Time) Tally {
	return record(traces, engine, reader{dimensions: newDimensions(dimensions), verdictsOnly: true}, now)
}

func record(traces ptrace.Traces, engine *series.Engine, r reader, now time.Time) (t Tally) {
	resource := make([]string, len(r.dimensions.names))
	r.request.Dimensions = make([]string, len(r.dimensions.names))
	for _, resourceSpans := range traces.ResourceSpans().All() {
		clear(resource)
		for key, v := range resourceSpans.Resource().Attributes().All() {
			r.dimensions.read(resource, key, v)
		}
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			for _, span := range scopeSpans.Spans().All() {
				if !r.read(span, resource, now) {
					t.Ignored++
					continue
				}
				t.add(engine.Record(&r.request), &r)
			}
		}
	}
	return t
}

func (t *Tally) add(recorded series.Recorded, r *reader) {
	t.Requests++
	if recorded.Overflow {
		t.Overflow++
	}
	t.DroppedVerdicts += int64(recorded.DroppedVerdicts)
	for reason, n := range r.rejected {
		t.Rejected[reason] += n
	}
	// One attribute can serve two distributions, and is rejected once.
	t.Rejected[MalformedSketch] += int64(min(recorded.MalformedSketches, r.sketches))
}
