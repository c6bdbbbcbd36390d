// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// timelineWriter writes the timings of streams as they are, for token_latency to read.
type timelineWriter struct {
	encoded []byte // buffer for one timeline
}

func (w *timelineWriter) write(attributes pcommon.Map, stream *assembly.Finished) {
	line := stream.Chunks.Timeline()
	attributes.PutStr(names.Vantage, stream.Start.Vantage.OrDefault().String())
	attributes.PutStr(names.Outcome, stream.Outcome())
	w.putTimeline(attributes, &line, stream)
	observed := Observed(stream, &line)
	if queue := observed.Queue(); queue.Known {
		attributes.PutDouble(names.QueueDuration, queue.Value.Seconds())
	}
	putFlaws(attributes, stream)
}

func (w *timelineWriter) putTimeline(attributes pcommon.Map, line *timeline.Timeline, stream *assembly.Finished) {
	w.encoded = line.AppendBinary(w.encoded[:0], stream.Start.UnixNano)
	attributes.PutEmptyBytes(names.Timeline).FromRaw(w.encoded)
}

// Observed returns what was observed of a stream. line is its timeline, or nil if that is not read.
func Observed(stream *assembly.Finished, line *timeline.Timeline) source.TokenStream {
	return source.TokenStream{
		Vantage:       stream.Start.Vantage.OrDefault(),
		Start:         stream.Start.UnixNano,
		End:           stream.EndUnixNano(),
		Scheduled:     stream.Scheduled,
		StartUnseen:   stream.Start.Implied,
		Outcome:       stream.Outcome(),
		ChunksDropped: int64(stream.Dropped()),
		Frames:        stream.Chunks.Frames,
		Timeline:      line,
	}
}

// putFlaws writes what is incomplete about the timings.
func putFlaws(attributes pcommon.Map, stream *assembly.Finished) {
	if stream.Start.Implied {
		attributes.PutBool(names.StartUnseen, true)
	}
	if stream.Cut {
		attributes.PutStr(names.Cut, names.CutCollector)
	}
	if stream.Chunks.Frames {
		attributes.PutBool(names.Frames, true)
	}
	if dropped := stream.Dropped(); dropped > 0 {
		attributes.PutInt(names.ChunksDropped, int64(dropped))
	}
}
