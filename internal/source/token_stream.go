// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/internal/vantage"
)

// tokenStream reads the spans of the token_stream receiver, which carry a timeline.
var tokenStream = reader{
	name:    names.SourceTokenStream,
	vantage: vantage.Server,
	signs:   []*sign{{key: names.Timeline}},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case names.QueueDuration:
			o.Request.Queue = durationIn(time.Second, v, &o.Unusable)
		case names.ChunksDropped:
			o.Request.LastChunksDropped = count(v, &o.Unusable)
		case names.StartUnseen:
			o.Request.StartUnknown = v.Bool()
		case names.Frames:
			o.Request.Frames = v.Bool()
		}
	},
}

// readTokenStream reads the attributes that only spans of token_stream have: the outcome, which
// replaces one derived from finish reasons, and the timeline.
func (o *Observation) readTokenStream(span ptrace.Span) (err error) {
	outcome, ok := span.Attributes().Get(names.Outcome)
	o.Request.Outcome = ""
	if ok {
		o.Request.Outcome = outcome.Str()
	}
	stored, _ := span.Attributes().Get(names.Timeline)
	if stored.Type() != pcommon.ValueTypeBytes {
		return fmt.Errorf("%s has type %s; it must be bytes", names.Timeline, stored.Type())
	}
	o.Timeline, err = timeline.Decode(stored.Bytes().AsRaw())
	return err
}
