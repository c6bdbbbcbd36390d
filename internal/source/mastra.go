package source

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

const (
	mastraType       = "mastra.span.type"
	mastraFirstChunk = "mastra.completion_start_time"
)

// mastra reads the spans of Mastra's model calls: older versions call them
// generations. Those around them, of the agent and its steps, and those of their
// chunks below are none.
var mastra = reader{
	name:    names.SourceMastra,
	vantage: names.VantageClient,
	signs:   []*sign{{mastraType, oneOf("model_inference", "model_generation")}, {key: mastraFirstChunk}},
	claims:  func(c candidate) bool { return c.isModelCall() || c.text(mastraType) == "model_inference" },
	attribute: func(o *Observation, key string, v pcommon.Value) {
		if key == mastraFirstChunk {
			o.firstChunkAt(moment(v, &o.Unusable), false)
		}
	},
}
