// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Each expected value is the sent number in the unit of its sender. Of an unknown sender, it is the number in the only
// unit in which it is at least a millisecond and within the request.
func TestFirstToken_UnitOfItsSender(t *testing.T) {
	const response, server = "gen_ai.response.time_to_first_token", "gen_ai.server.time_to_first_token"
	for name, test := range map[string]struct {
		scope, system, key string
		value              any
		duration           time.Duration
		expected           latency.Measure
		reason             string
		unusable           int64
	}{
		"Strands":                             {"strands.telemetry.tracer", "", server, 842, 5 * time.Second, exactly(0.842), "", 0},
		"Strands, as a text":                  {"", "strands-agents", server, "2500", 5 * time.Second, exactly(2.5), "", 0},
		"RTP-LLM":                             {"", "rtp_llm", response, 18.0, 30 * time.Second, exactly(0.018), "", 0},
		"Bifrost":                             {"bifrost-otel-plugin", "", response, 5_000_000, 10 * time.Second, exactly(0.005), "", 0},
		"LoongSuite":                          {"loongsuite.instrumentation.dashscope", "", response, 5_000_000, 10 * time.Second, exactly(0.005), "", 0},
		"unknown, seconds":                    {"", "", response, 0.25, time.Second, exactly(0.25), "", 0},
		"unknown, milliseconds":               {"", "", server, 842, 5 * time.Second, exactly(0.842), "", 0},
		"unknown, nanoseconds":                {"", "", response, 200_000_000, time.Second, exactly(0.2), "", 0},
		"unknown, nanoseconds above 2^63 s":   {"", "", response, int64(12_000_000_000), 30 * time.Second, exactly(12), "", 0},
		"unknown, seconds or milliseconds":    {"", "", response, 18.0, 30 * time.Second, latency.Measure{}, "ambiguous_unit", 0},
		"unknown, a text without a number":    {"", "", response, "soon", time.Second, latency.Measure{}, "not_streamed", 1},
		"unknown, negative":                   {"", "", response, -0.1, time.Second, latency.Measure{}, "implausible", 0},
		"unknown, longer than the request":    {"", "", response, 1.5, time.Millisecond, latency.Measure{}, "implausible", 0},
		"unknown, beside the standard's name": {"", "", response, 18.0, 30 * time.Second, exactly(0.5), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			attributes := map[string]any{names.GenAIOperationName: "chat", test.key: test.value}
			if test.system != "" {
				attributes[names.GenAISystem] = test.system
			}
			if name == "unknown, beside the standard's name" { // as the remedy of the log says
				attributes[names.GenAITimeToFirstChunk] = 0.5
			}
			o, l := (&call{scope: test.scope, duration: test.duration, attributes: attributes}).latency(t)
			require.Equal(t, test.expected, l.Measures[numbers.TimeToFirstToken])
			require.Equal(t, test.reason, l.Absences[0].String())
			require.Equal(t, test.unusable, o.Unusable)
		})
	}
}
