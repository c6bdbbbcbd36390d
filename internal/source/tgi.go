// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// tgi reads the spans of Text Generation Inference. Its durations are texts with a unit. It ignores
// time_per_token, which includes the prefill and so is not the time per output token.
var tgi = reader{
	name:    names.SourceTGI,
	vantage: timeline.VantageEngine,
	signs:   []*sign{{key: "total_time"}, {key: "queue_time"}, {key: "inference_time"}, {key: "time_per_token"}},
	claims: func(c candidate) bool {
		return c.span.Name() == "generate" || c.span.Name() == "generate_stream"
	},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case "queue_time":
			o.Request.Queue = durationText(v, &o.Unusable)
		case "total_time":
			o.setDuration(durationText(v, &o.Unusable))
		}
	},
}
