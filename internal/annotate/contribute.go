// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// Contribute gives a request's latency to the builder of what it adds to its series: the numbers
// that Annotate writes on a span, as the reader of spans reads them. tokens and chunks are the
// sketches of the analyzer, which the builder refers to.
func (a *Annotator) Contribute(b *spanreader.Builder, derived *latency.Latency, tokens, chunks *sketch.Sketch) {
	b.Request.Outcome = series.Outcome(slices.Index(series.OutcomeNames[:], derived.Outcome))
	b.OutcomeKnown = true
	for _, id := range numbers.Histograms {
		if id < numbers.Singles && derived.Measures[id].Known && a.attributes[id] != "" {
			b.SetValue(id, derived.Written(id).Value)
		}
	}
	for _, id := range numbers.Sums {
		if m := derived.Written(id); m.Known {
			b.SetSum(id, m.Value)
		}
	}
	b.StalledAtEnd = derived.StalledAtEnd
	b.SetNumber(&b.ChunkCount, float64(derived.ChunkCount.Value))
	b.SetNumber(&b.TokenCount, float64(derived.TokenCount.Value))
	b.SetNumber(&b.ClockAnomalies, float64(derived.ClockAnomalies))
	for i, reason := range derived.Absences {
		if reason != latency.Present {
			b.Absent[i] = optional.Of(int(reason) - 1)
		}
	}
	a.contributeGaps(b, derived, tokens, chunks)
}

func (a *Annotator) contributeGaps(b *spanreader.Builder, derived *latency.Latency, tokens, chunks *sketch.Sketch) {
	if derived.InterToken[latency.Max].Known {
		b.SetNumber(&b.TokenGaps.Max, derived.Written(numbers.InterTokenMax).Value)
	}
	if derived.InterChunk[latency.Max].Known && a.attributes[numbers.InterChunkMax] != "" {
		b.ChunkGapsLikeToken = true
		b.SetNumber(&b.ChunkGaps.Max, derived.Written(numbers.InterChunkMax).Value)
	}
	if tokens.Count() == 0 {
		return
	}
	if a.attributes[numbers.InterTokenLatency] != "" {
		b.TokenGaps.Values = tokens
		b.Sketches++
	}
	if a.attributes[numbers.InterChunkLatency] != "" && chunks != tokens {
		b.ChunkGaps.Values, b.OwnChunkGaps = chunks, true
		b.Sketches++
	}
}
