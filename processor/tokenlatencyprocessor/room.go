package tokenlatencyprocessor

import (
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// tokenStreamReader is the reader of the token_stream receiver's spans.
var tokenStreamReader = slices.Index(source.Names(), names.SourceTokenStream)

// room returns how many attributes annotate adds to a span that no processor has
// written on. To ask for more would make the slice anew that the token_stream
// receiver made large enough.
func (w *worker) room(observed *source.Observation, derived *latency.Latency) int {
	room := 3 // source, vantage and outcome
	if observed.Reader == tokenStreamReader {
		room = 1 // the receiver wrote the others
	}
	estimated := false
	for _, measures := range [...][]latency.Measure{derived.Measures[:], derived.InterToken[:], derived.InterChunk[:]} {
		for i := range measures {
			if measures[i].Known {
				room++
			}
			estimated = estimated || measures[i].Estimated
		}
	}
	tokens, chunks := w.analyzer.InterTokenSketch(), w.analyzer.InterChunkSketch()
	for _, there := range [...]bool{
		derived.Measures[latency.StallDuration].Known, // has a count
		derived.ChunkCount.Known,
		derived.TokenCount.Known,
		derived.TokenCountMismatch != 0,
		derived.ClockAnomalies > 0,
		tokens.Count() > 0,
		chunks != tokens,
		estimated,
	} {
		if there {
			room++
		}
	}
	for _, standard := range filled {
		if isAlias(&observed.Standard[standard]) {
			room++
		}
	}
	return room
}
