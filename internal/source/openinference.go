// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// openInferenceLLM is the sign of a model call by OpenInference's conventions.
var openInferenceLLM = &sign{names.OpenInferenceSpanKind, oneOf("LLM")}

// openInference reads the spans of OpenInference. Its first-token event marks the first frame, which
// holds the role or reports that the response was created.
var openInference = reader{
	name:              names.SourceOpenInference,
	vantage:           timeline.VantageClient,
	signs:             []*sign{openInferenceLLM},
	claims:            func(c candidate) bool { return !isEnvoyAIGateway(c) && !isLiteLLM(c) },
	firstChunkIsFrame: true,
	event:             openInferenceEvent,
}

func openInferenceEvent(o *Observation, span ptrace.Span, event ptrace.SpanEvent) {
	if event.Name() == "First Token Stream Event" {
		o.setFirstTokenEvent(span, event, true)
	}
}
