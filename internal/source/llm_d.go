package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// llmD reads the request spans of llm-d's sidecar, which sends a request to one
// engine for prefill and to another for decode. What it calls the true TTFT is
// when the decode was sent off, so it is not read. Its phases are whole HTTP
// requests, and hold queue and network.
var llmD = reader{
	name:    names.SourceLLMD,
	vantage: names.VantageGateway,
	signs: []*sign{
		{key: "llm_d.pd_proxy.total_duration_ms"}, {key: "llm_d.pd_proxy.true_ttft_ms"}, {key: "llm_d.pd_proxy.decode_duration_ms"},
	},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case "llm_d.pd_proxy.total_duration_ms":
			o.endToEnd(durationIn(time.Millisecond, v, &o.Unusable))
		case "llm_d.pd_proxy.prefill_duration_ms", "llm_d.pd_proxy.prefill.duration_ms":
			o.Request.Prefill = durationIn(time.Millisecond, v, &o.Unusable)
			o.Request.PrefillEstimated = true
		case "llm_d.pd_proxy.decode_duration_ms", "llm_d.pd_proxy.decode.duration_ms":
			o.Request.Decode = durationIn(time.Millisecond, v, &o.Unusable)
			o.Request.DecodeEstimated = true
		}
	},
}
