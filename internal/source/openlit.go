// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const openLITStream = "gen_ai.request.is_stream"

// openLIT reads the spans of OpenLIT. Its gen_ai.server attributes are measured at the client, from
// frames, and are also set on calls that do not stream.
var openLIT = reader{
	name:              names.SourceOpenLIT,
	vantage:           timeline.VantageClient,
	signs:             []*sign{modelCall},
	claims:            isOpenLIT,
	firstChunkIsFrame: true,
	reportsStreaming:  true,
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case "gen_ai.server.ttft":
			o.setFirstChunk(durationIn(time.Second, v, &o.Unusable), readerRank)
		case "gen_ai.server.time_per_output_token", "gen_ai.server.tbt": // the mean gap of all frames
			o.Request.ReportedGaps.InterChunk[latency.Mean] = measure(time.Second, v, true, &o.Unusable)
		}
	},
}

func isOpenLIT(c candidate) bool {
	return c.text("telemetry.sdk.name") == "openlit" || strings.HasPrefix(c.scope, "openlit") || c.has(openLITStream)
}
