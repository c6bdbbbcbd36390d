// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// contributed maps quantities of a request to those of its series.
var contributed = [...]struct {
	from latency.Quantity
	to   series.Quantity
}{
	{latency.RequestDuration, series.RequestDuration},
	{latency.TimeToFirstToken, series.TimeToFirstToken},
	{latency.TimeToFirstOutputToken, series.TimeToFirstOutputToken},
	{latency.TimePerOutputToken, series.TimePerOutputToken},
	{latency.QueueDuration, series.QueueDuration},
	{latency.PrefillDuration, series.PrefillDuration},
	{latency.DecodeDuration, series.DecodeDuration},
	{latency.OutputTokenRate, series.OutputTokenRate},
}

// Contribute gives a request's latency to the builder of what it adds to its series: the numbers
// that Annotate writes on a span, as the reader of spans reads them. tokens and chunks are the
// sketches of the analyzer, which the builder refers to.
func (a *Annotator) Contribute(b *spanreader.Builder, derived *latency.Latency, tokens, chunks *sketch.Sketch) {
	b.Request.Outcome = series.Outcome(slices.Index(series.OutcomeNames[:], derived.Outcome))
	b.OutcomeKnown = true
	for _, q := range contributed {
		if m := &derived.Measures[q.from]; m.Known && a.measures[q.from] != "" {
			b.SetValue(q.to, measure(derived, q.from).Value)
		}
	}
	if stalls := measure(derived, latency.StallDuration); stalls.Known {
		b.SetCount(series.Stalls, float64(derived.StallCount))
		b.SetCount(series.StallSeconds, stalls.Value)
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
		b.SetNumber(&b.TokenGaps.Max, statistic(&derived.InterToken, latency.Max).Value)
	}
	if derived.InterChunk[latency.Max].Known && a.interChunk.statistics[latency.Max] != "" {
		b.ChunkGapsLikeToken = true
		b.SetNumber(&b.ChunkGaps.Max, statistic(&derived.InterChunk, latency.Max).Value)
	}
	if tokens.Count() == 0 {
		return
	}
	if a.interToken.sketch != "" {
		b.TokenGaps.Values = tokens
		b.Sketches++
	}
	if a.interChunk.sketch != "" && chunks != tokens {
		b.ChunkGaps.Values, b.OwnChunkGaps = chunks, true
		b.Sketches++
	}
}
