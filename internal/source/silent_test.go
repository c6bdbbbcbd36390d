// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// By the conventions a call without a sign of a stream is one that did not stream.
func TestSilentCall_StreamsIfItHasASignOfAStream(t *testing.T) {
	chat := func(more ...any) map[string]any {
		attributes := map[string]any{names.GenAIOperationName: "chat"}
		for i := 0; i < len(more); i += 2 {
			attributes[more[i].(string)] = more[i+1]
		}
		return attributes
	}
	tests := map[string]struct {
		call   call
		reason string
	}{
		"no sign":                      {call{attributes: chat()}, "not_streamed"},
		"reports that it streams":      {call{attributes: chat("gen_ai.request.stream", true)}, "not_reported"},
		"reports that it does not":     {call{attributes: chat("gen_ai.request.stream", false)}, "not_streamed"},
		"library that reports neither": {call{scope: "@opentelemetry/instrumentation-openai", attributes: chat()}, "not_reported"},
		"a first token in an event of another name": {
			call{attributes: chat(), events: []event{{name: "gen_ai.content.first_token", after: time.Second / 5}}}, "not_read",
		},
		"seen by an engine": {call{attributes: chat(names.Vantage, "engine")}, "not_reported"},
		"a mean gap":        {call{attributes: chat("gen_ai.client.operation.time_per_output_chunk", 0.05)}, "not_reported"},
		"a last token":      {call{attributes: chat(), events: []event{{name: "last_token", after: time.Second / 2}}}, "not_reported"},
		"the last of its frames": {
			call{attributes: chat(), dropped: 5, events: []event{{name: names.ContentChunk, after: time.Second / 2}}}, "dropped_events",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, l := test.call.latency(t)
			require.Equal(t, test.reason, l.Absences[0].String())
		})
	}
}
