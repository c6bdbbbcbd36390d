// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const copilotFirstToken = "copilot_chat.time_to_first_token"

// copilotChat reads the spans of earlier versions of GitHub Copilot Chat. Later ones follow the conventions.
var copilotChat = reader{
	name:    names.SourceCopilotChat,
	vantage: timeline.VantageClient,
	signs:   []*sign{{key: copilotFirstToken}},
	claims:  candidate.isModelCall,
	attribute: func(o *Observation, key string, v pcommon.Value) {
		if key == copilotFirstToken {
			o.setFirstChunk(durationIn(time.Millisecond, v, &o.Unusable), readerRank)
		}
	},
}
