// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// conclude completes the request once all attributes and events of the span are read.
func (o *Observation) conclude(r *reader, c candidate) {
	o.Request.TokensNotObserved = true
	o.Request.FirstTokenRejected = o.Rejected != [latency.NumReasons]int64{}
	if o.isWhole(r) {
		o.Request.NotStreamed = true
		o.discardTokenTimes()
		return
	}
	if !o.timeKnown() && !o.Request.AmbiguousUnit && !o.Request.FirstTokenRejected {
		o.Request.NotRead = hasUnreadTiming(r, c)
	}
	o.Request.NotStreamed = r.silentIsWhole != nil && r.silentIsWhole(c) && o.isSilent() && !o.Request.NotRead && !o.Request.AmbiguousUnit
	chunk := &o.Standard[names.TimeToFirstChunk]
	if chunk.Known && !o.Request.FirstToken[latency.RelativeTime].Known && chunk.Rank != absoluteRank {
		o.Request.FirstToken[latency.RelativeTime] = latency.Milestone{
			Offset: chunk.Duration, Known: true, Estimated: o.firstChunkIsFrame,
		}
	}
}

// isWhole reports whether the answer came as a whole, so that its tokens have no times. The
// conventions say that a call without the streaming attribute does not stream, but some
// instrumentations never set it. Such a call streams if its first chunk came before its end.
func (o *Observation) isWhole(r *reader) bool {
	switch {
	case o.Vantage == timeline.VantageEngine: // generates token by token, whatever the client asked for
		return false
	case o.streaming.Known:
		return !o.streaming.Value
	case r.reportsStreaming:
		return true
	default:
		chunk := &o.Standard[names.TimeToFirstChunk]
		return chunk.Known && o.Request.Duration-chunk.Duration <= atEnd
	}
}

// isSilent reports whether the span has no sign of a stream. A time of the first token would be one,
// too, but then it does not matter.
func (o *Observation) isSilent() bool {
	return !o.streaming.Known && o.Vantage != timeline.VantageEngine && o.Timeline.Left() == 0 && !o.Request.LastToken.Known &&
		o.Request.ReportedGaps == latency.ReportedGaps{}
}

// discardTokenTimes removes every time of a token.
func (o *Observation) discardTokenTimes() {
	o.Standard[names.TimeToFirstChunk] = Reported{}
	o.Request.FirstToken = [latency.NumTimeSources]latency.Milestone{}
	o.Request.LastToken = optional.Value[time.Duration]{}
	o.Request.ReportedGaps = latency.ReportedGaps{}
	o.Request.Frames, o.Request.FirstChunksDropped = false, 0
	o.Timeline = timeline.Walk{}
}
