package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

const (
	openLITStream     = "gen_ai.request.is_stream"
	openLITFirstToken = "gen_ai.server.time_to_first_token"
)

// openLIT reads the spans of OpenLIT. It measures at the client what it names
// after the server, from frames, and also for calls that do not stream.
var openLIT = reader{
	name:              names.SourceOpenLIT,
	vantage:           names.VantageClient,
	signs:             []*sign{modelCall},
	claims:            isOpenLIT,
	firstChunkIsFrame: true,
	streamingIsSaid:   true,
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case openLITFirstToken, "gen_ai.server.ttft":
			o.tellFirstChunk(durationIn(time.Second, v, &o.Unusable), readersRank)
		case "gen_ai.server.time_per_output_token", "gen_ai.server.tbt": // the mean gap of all frames
			o.Request.Chunks.InterChunk[latency.Mean] = measure(time.Second, v, true, &o.Unusable)
		}
	},
}

func isOpenLIT(c candidate) bool {
	return c.text("telemetry.sdk.name") == "openlit" || c.has(openLITStream, openLITFirstToken)
}
