// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// timelineWriter writes the timings of streams as they are, for token_latency to read.
type timelineWriter struct {
	encoded []byte // buffer for one timeline
}

func (w *timelineWriter) write(attributes pcommon.Map, stream *assembly.Finished) {
	line := stream.Chunks.Timeline()
	observed := Observed(stream, nil)
	observed.Write(attributes, w.encode(&line, stream))
}

// encode returns the encoded timeline of a stream, until the next call.
func (w *timelineWriter) encode(line *timeline.Timeline, stream *assembly.Finished) []byte {
	w.encoded = line.AppendBinary(w.encoded[:0], stream.Start.UnixNano)
	return w.encoded
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
		Cut:           stream.Cut,
		Timeline:      line,
	}
}
