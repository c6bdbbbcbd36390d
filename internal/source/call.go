package source

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// firstChunkAt takes the absolute time of the first chunk.
func (o *Observation) firstChunkAt(unixNano latency.Optional[int64], estimated bool) {
	if !unixNano.Known {
		return
	}
	after := time.Duration(unixNano.Value - int64(o.start))
	o.Request.FirstToken[latency.AbsoluteTime] = latency.Milestone{After: after, Known: true, Estimated: estimated}
	if 0 <= after && after <= o.Request.Duration {
		o.tell(names.TimeToFirstChunk, Told{Duration: after, Rank: absoluteRank})
	}
}

// conclude makes a request of what was taken from the span's attributes and
// events.
func (o *Observation) conclude(reader *reader) {
	o.Request.TokensUnwatched = true
	chunk := &o.Standard[names.TimeToFirstChunk]
	if o.isWhole(reader, chunk) {
		o.forgetTokens()
		return
	}
	if chunk.Known && !o.Request.FirstToken[latency.RelativeTime].Known && chunk.Rank != absoluteRank {
		o.Request.FirstToken[latency.RelativeTime] = latency.Milestone{
			After: chunk.Duration, Known: true, Estimated: o.firstChunkIsFrame,
		}
	}
}

// isWhole reports that the answer came as a whole, so that its tokens have no
// times, whatever the span says. By the conventions a call that does not say
// that it streams does not; yet some that do never say so. What tells them apart
// is a first chunk before the end.
func (o *Observation) isWhole(reader *reader, chunk *Told) bool {
	switch {
	case o.Vantage == names.VantageEngine: // it makes one token after the other all the same
		return false
	case o.streaming != unsaid:
		return o.streaming == no
	case reader.streamingIsSaid:
		return true
	default:
		return chunk.Known && o.Request.Duration-chunk.Duration <= atEnd
	}
}

// forgetTokens takes back all times of tokens.
func (o *Observation) forgetTokens() {
	o.Standard[names.TimeToFirstChunk] = Told{}
	o.Request.FirstToken = [latency.Trusts]latency.Milestone{}
	o.Request.LastToken = latency.Optional[time.Duration]{}
	o.Request.Chunks = latency.ReportedGaps{}
	o.Request.Frames, o.Request.FirstChunksDropped = false, 0
	o.Timeline = timeline.Walk{}
}
