// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"net/http"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const agentgatewayFirstToken = "agw.ai.time_to_first_token"

// agentgateway reads the spans of agentgateway. Its time per output token is not read: TPOT is derived, as for all others.
var agentgateway = reader{
	name:    names.SourceAgentgateway,
	vantage: timeline.VantageGateway,
	signs:   []*sign{{key: agentgatewayFirstToken}, modelCall},
	claims:  func(c candidate) bool { return c.has(agentgatewayFirstToken) || c.scope == "agentgateway" },
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case agentgatewayFirstToken:
			o.setFirstChunk(durationIn(time.Second, v, &o.Unusable), readerRank)
		case "http.status": // its spans have no status
			status, ok := attributes.Number(v)
			o.Request.Failed = o.Request.Failed || ok && status >= http.StatusBadRequest
		}
	},
}
