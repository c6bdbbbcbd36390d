// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// timelineWriter writes the timings of streams as they are, for token_latency to read.
type timelineWriter struct {
	encoded []byte // buffer for one timeline
}

func (w *timelineWriter) write(span ptrace.Span, _ pcommon.Map, stream *assembly.Finished) {
	attributes, line := span.Attributes(), stream.Chunks.Timeline()
	attributes.PutStr(names.Vantage, vantageOf(stream.Start.Vantage).String())
	attributes.PutStr(names.Outcome, outcomeOf(stream.End))
	w.putTimeline(attributes, &line, stream)
	observed := observedOf(stream, &line)
	if queue := observed.Queue(); queue.Known {
		attributes.PutDouble(names.QueueDuration, queue.Value.Seconds())
	}
	putFlaws(attributes, stream)
}

func (w *timelineWriter) putTimeline(attributes pcommon.Map, line *timeline.Timeline, stream *assembly.Finished) {
	w.encoded = line.AppendBinary(w.encoded[:0], stream.Start.UnixNano)
	attributes.PutEmptyBytes(names.Timeline).FromRaw(w.encoded)
}

// observedOf returns what was observed of a stream.
func observedOf(stream *assembly.Finished, line *timeline.Timeline) source.TokenStream {
	return source.TokenStream{
		Vantage:       vantageOf(stream.Start.Vantage),
		Start:         stream.Start.UnixNano,
		End:           stream.EndUnixNano(),
		Scheduled:     stream.Scheduled,
		StartUnseen:   stream.Start.Implied,
		Outcome:       outcomeOf(stream.End),
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
