// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// llmD reads the request spans of llm-d's sidecar, which sends a request to one engine for prefill
// and to another for decode. It ignores true_ttft_ms, the time at which the sidecar sends the decode
// request. The phases are estimates: whole HTTP requests, including queue and network.
var llmD = reader{
	name:    names.SourceLLMD,
	vantage: timeline.VantageGateway,
	signs: []*sign{
		{key: "llm_d.pd_proxy.total_duration_ms"}, {key: "llm_d.pd_proxy.true_ttft_ms"}, {key: "llm_d.pd_proxy.decode_duration_ms"},
	},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case "llm_d.pd_proxy.total_duration_ms":
			o.setDuration(durationIn(time.Millisecond, v, &o.Unusable))
		case "llm_d.pd_proxy.prefill_duration_ms", "llm_d.pd_proxy.prefill.duration_ms":
			o.Request.Prefill = durationIn(time.Millisecond, v, &o.Unusable)
			o.Request.PrefillEstimated = true
		case "llm_d.pd_proxy.decode_duration_ms", "llm_d.pd_proxy.decode.duration_ms":
			o.Request.Decode = durationIn(time.Millisecond, v, &o.Unusable)
			o.Request.DecodeEstimated = true
		}
	},
}
