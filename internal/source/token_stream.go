package source

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// tokenStream reads the spans of the token_stream receiver: they carry a timeline.
var tokenStream = reader{
	name:    names.SourceTokenStream,
	vantage: names.VantageServer,
	signs:   []*sign{{key: names.Timeline}},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case names.QueueDuration:
			o.Request.Queue = durationIn(time.Second, v, &o.Unusable)
		case names.ChunksDropped:
			o.Request.LastChunksDropped = count(v, &o.Unusable)
		case names.StartUnseen:
			o.Request.StartUnseen = v.Bool()
		case names.Frames:
			o.Request.Frames = v.Bool()
		}
	},
}

// readStream takes what only our own spans have, and have to have.
func (o *Observation) readStream(span ptrace.Span) (err error) {
	outcome, ok := span.Attributes().Get(names.Outcome)
	o.Request.Outcome = ""
	if ok {
		o.Request.Outcome = outcome.Str()
	}
	stored, _ := span.Attributes().Get(names.Timeline)
	o.Timeline, err = decodeTimeline(stored)
	return err
}

func decodeTimeline(v pcommon.Value) (timeline.Walk, error) {
	if v.Type() != pcommon.ValueTypeBytes {
		return timeline.Walk{}, fmt.Errorf("%s is of type %s, not bytes", names.Timeline, v.Type())
	}
	return timeline.Decode(v.Bytes().AsRaw())
}
