// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// Attributes that several engines write, in seconds.
const (
	engineTimeToFirstToken = "gen_ai.latency.time_to_first_token"
	engineEndToEnd         = "gen_ai.latency.e2e"
	engineQueue            = "gen_ai.latency.time_in_queue"
	enginePrefill          = "gen_ai.latency.time_in_model_prefill"
	engineDecode           = "gen_ai.latency.time_in_model_decode"
	engineInference        = "gen_ai.latency.time_in_model_inference"
	engineCacheTransfer    = "gen_ai.latency.kv_cache_transfer_time"
)

// engineSigns are the signs of an engine that writes these attributes. A request that ended early
// may have only its usage.
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

// readEngine keeps an engine's own measurements unchanged. They do not add up: the time to first
// token is taken from the wall clock and the phases from a monotonic clock, and the request also
// spends time outside the model.
func readEngine(o *Observation, key string, v pcommon.Value) {
	switch key {
	case engineTimeToFirstToken:
		if d := durationIn(time.Second, v, &o.Unusable); d.Known {
			o.Request.FirstToken[latency.RelativeTime] = latency.Milestone{Offset: d.Value, Known: true}
		}
	case engineEndToEnd:
		o.setDuration(durationIn(time.Second, v, &o.Unusable))
	case engineQueue:
		o.Request.Queue = durationIn(time.Second, v, &o.Unusable)
	case enginePrefill:
		o.Request.Prefill = durationIn(time.Second, v, &o.Unusable)
	case engineDecode:
		o.Request.Decode = durationIn(time.Second, v, &o.Unusable)
	case engineCacheTransfer:
		o.Request.Transfer = durationIn(time.Second, v, &o.Unusable)
	}
}

// setDuration keeps the request's duration as the engine measured it. The span may end later than
// the request, never earlier.
func (o *Observation) setDuration(measured optional.Value[time.Duration]) {
	switch {
	case !measured.Known:
	case 0 < measured.Value && measured.Value <= o.Request.Duration:
		o.Request.Duration = measured.Value
	default:
		o.Unusable++
	}
}
