// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const (
	mastraType       = "mastra.span.type"
	mastraFirstChunk = "mastra.completion_start_time"
)

// mastra reads the spans of Mastra's model calls, which older versions name model_generation. The
// spans of agents and steps above a call, and of its chunks below, are not model calls.
var mastra = reader{
	name:    names.SourceMastra,
	vantage: timeline.VantageClient,
	signs:   []*sign{{mastraType, oneOf("model_inference", "model_generation")}, {key: mastraFirstChunk}},
	claims:  func(c candidate) bool { return c.isModelCall() || c.text(mastraType) == "model_inference" },
	attribute: func(o *Observation, key string, v pcommon.Value) {
		if key == mastraFirstChunk {
			o.setFirstChunkAt(timeText(v, &o.Unusable), false)
		}
	},
}
