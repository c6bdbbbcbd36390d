// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const pipecatFirstByte = "metrics.ttfb"

// pipecat reads the spans of language models in Pipecat. Those of speech services have the same time to first byte.
var pipecat = reader{
	name:              names.SourcePipecat,
	vantage:           timeline.VantageClient,
	signs:             []*sign{{key: pipecatFirstByte}},
	claims:            func(c candidate) bool { return c.isModelCall() || c.span.Name() == "llm" },
	firstChunkIsFrame: true,
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case pipecatFirstByte:
			o.setFirstChunk(durationIn(time.Second, v, &o.Unusable), readerRank)
		case "stream":
			o.streaming = boolean(v)
		}
	},
}
