// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// envoyAIGateway reads the spans of Envoy AI Gateway, which follow OpenInference or the OpenTelemetry
// conventions. Most releases stamp the first-token event when the span ends; it is then ignored.
var envoyAIGateway = reader{
	name:              names.SourceEnvoyAIGateway,
	vantage:           timeline.VantageGateway,
	signs:             []*sign{openInferenceLLM, modelCall},
	claims:            isEnvoyAIGateway,
	firstChunkIsFrame: true,
	event:             openInferenceEvent,
}

func isEnvoyAIGateway(c candidate) bool { return c.scope == "envoyproxy/ai-gateway" }
