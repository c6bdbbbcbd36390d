package source

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// tgi reads the spans of Text Generation Inference. Its durations are written
// with their unit, and its time_per_token is no time per output token: it holds
// the prefill.
var tgi = reader{
	name:    names.SourceTGI,
	vantage: names.VantageEngine,
	signs:   []*sign{{key: "total_time"}, {key: "queue_time"}, {key: "inference_time"}, {key: "time_per_token"}},
	claims: func(c candidate) bool {
		return c.span.Name() == "generate" || c.span.Name() == "generate_stream"
	},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case "queue_time":
			o.Request.Queue = written(v, &o.Unusable)
		case "total_time":
			o.endToEnd(written(v, &o.Unusable))
		}
	},
}
