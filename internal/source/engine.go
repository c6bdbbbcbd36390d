package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
)

// Attributes that several engines write, all in seconds.
const (
	engineTimeToFirstToken = "gen_ai.latency.time_to_first_token"
	engineEndToEnd         = "gen_ai.latency.e2e"
	engineQueue            = "gen_ai.latency.time_in_queue"
	enginePrefill          = "gen_ai.latency.time_in_model_prefill"
	engineDecode           = "gen_ai.latency.time_in_model_decode"
	engineInference        = "gen_ai.latency.time_in_model_inference"
	engineCacheTransfer    = "gen_ai.latency.kv_cache_transfer_time"
)

// engineSigns hint at an engine that writes them, or that got no further than the
// usage.
var engineSigns = []*sign{
	{key: engineTimeToFirstToken},
	{key: engineEndToEnd},
	{key: engineQueue},
	{key: enginePrefill},
	{key: engineDecode},
	{key: engineInference},
	{key: engineCacheTransfer},
	{key: "gen_ai.usage.prompt_tokens"},
	{key: "gen_ai.usage.completion_tokens"},
}

// readEngine takes an engine's own measurements. They are taken as they are: time
// to first token is of the wall clock and the phases are of another, so that they
// do not add up, and the rest is time outside the model.
func readEngine(o *Observation, key string, v pcommon.Value) {
	switch key {
	case engineTimeToFirstToken:
		if d := durationIn(time.Second, v, &o.Unusable); d.Known {
			o.Request.FirstToken[latency.RelativeTime] = latency.Milestone{After: d.Value, Known: true}
		}
	case engineEndToEnd:
		o.endToEnd(durationIn(time.Second, v, &o.Unusable))
	case engineQueue:
		o.Request.Queue = durationIn(time.Second, v, &o.Unusable)
	case enginePrefill:
		o.Request.Prefill = durationIn(time.Second, v, &o.Unusable)
	case engineDecode:
		o.Request.Decode = durationIn(time.Second, v, &o.Unusable)
	}
}

// endToEnd takes the request's duration as the engine measured it. The span may
// end later, when the engine gets to it.
func (o *Observation) endToEnd(told latency.Optional[time.Duration]) {
	switch {
	case !told.Known:
	case 0 < told.Value && told.Value <= o.Request.Duration:
		o.Request.Duration = told.Value
	default:
		o.Unusable++
	}
}
