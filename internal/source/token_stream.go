package source

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// tokenStream reads the spans of the token_stream receiver: they carry a timeline.
var tokenStream = reader{names.SourceTokenStream, carriesTimeline, readTokenStream}

func carriesTimeline(span ptrace.Span) bool {
	_, ok := span.Attributes().Get(names.Timeline)
	return ok
}

func readTokenStream(span ptrace.Span) (o Observation, err error) {
	for key, v := range span.Attributes().All() {
		switch key {
		case names.Timeline:
			if o.Timeline, err = decodeTimeline(v); err != nil {
				return o, err
			}
		case names.Vantage:
			o.Vantage = v.Str()
		case names.Outcome:
			o.Request.Outcome = v.Str()
		case names.QueueDuration:
			o.Request.Queue = seconds(v, &o.Unusable)
		case names.GenAIOutputTokens:
			o.Request.OutputTokens = integer(v, &o.Unusable)
		case names.ChunksDropped:
			o.Request.LastChunksDropped = count(v, &o.Unusable)
		}
	}
	o.Vantage = knownVantage(o.Vantage)
	return o, nil
}

func decodeTimeline(v pcommon.Value) (timeline.Walk, error) {
	if v.Type() != pcommon.ValueTypeBytes {
		return timeline.Walk{}, fmt.Errorf("%s is of type %s, not bytes", names.Timeline, v.Type())
	}
	return timeline.Decode(v.Bytes().AsRaw())
}

// knownVantage returns the default for a vantage that is missing or made up.
func knownVantage(vantage string) string {
	switch vantage {
	case names.VantageClient, names.VantageGateway, names.VantageEngine:
		return vantage
	}
	return names.VantageServer
}
