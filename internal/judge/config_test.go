// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

func TestConfig_InvalidSLOs(t *testing.T) {
	valid := func(key string, value any) map[string]any {
		slo := map[string]any{"name": "tpot", "indicator": "time_per_output_token", "threshold": "50ms"}
		slo[key] = value
		return slo
	}
	tests := map[string]struct {
		slos    []any
		message string
	}{
		"no name":           {[]any{valid("name", "")}, "slos::0: `name` is missing; give the SLO a name, such as chat-tpot"},
		"reserved name":     {[]any{valid("name", "all")}, "slos::0: `name` is \"all\", which is reserved for all SLOs together; choose another"},
		"duplicate name":    {[]any{valid("name", "a"), valid("name", "b"), valid("name", "a")}, "`slos::0` and `slos::2` are both named \"a\"; rename one"},
		"unknown indicator": {[]any{valid("indicator", "tpot")}, `unknown indicator "tpot"; valid indicators: chunk.count, clock.anomalies, decode.duration`},
		"no indicator":      {[]any{valid("indicator", "")}, `unknown indicator ""; valid indicators:`},
		"higher is better":  {[]any{valid("indicator", "output_token_rate")}, "`indicator` is \"output_token_rate\", which cannot have an upper threshold, because higher is better; use time_per_output_token"},
		"no threshold":      {[]any{valid("threshold", nil)}, "`threshold` is missing; time_per_output_token needs a positive duration with a unit, such as 50ms"},
		"no threshold of a count": {
			[]any{map[string]any{"name": "stalls", "indicator": "stall.count"}}, "`threshold` is missing; stall.count needs a positive number",
		},
		"threshold of the outcome": {
			[]any{map[string]any{"name": "availability", "indicator": "outcome", "threshold": 1}}, "`threshold` is 1, but outcome has none: a success is good; remove `threshold`",
		},
		"threshold attribute of the outcome": {
			[]any{map[string]any{"name": "availability", "indicator": "outcome", "threshold_attribute": "tenant.outcome"}},
			"`threshold_attribute` is \"tenant.outcome\", but outcome has no threshold; remove `threshold_attribute`",
		},
		"threshold of 0":           {[]any{valid("threshold", "0s")}, "`threshold` is 0s; time_per_output_token needs a positive duration"},
		"negative threshold":       {[]any{valid("threshold", "-5ms")}, "`threshold` is -5ms"},
		"threshold without a unit": {[]any{valid("threshold", 50)}, "`threshold` is 50; time_per_output_token needs a positive duration"},
		"threshold is a list":      {[]any{valid("threshold", []any{"50ms"})}, "needs a positive duration"},
		"client errors are good":   {[]any{valid("client_errors", "good")}, "`client_errors` is \"good\"; use bad to count client mistakes as bad, or remove it: they are then not eligible"},
		"duration of a count": {
			[]any{map[string]any{"name": "stalls", "indicator": "stall.count", "threshold": "1s"}}, "stall.count needs a positive number",
		},
		"count of 0": {[]any{map[string]any{"name": "stalls", "indicator": "stall.count", "threshold": 0}}, "stall.count needs a positive number"},
		"bad expression": {
			[]any{valid("match_regexp", map[string]any{"gen_ai.request.model": "llama("})}, "`match_regexp` of gen_ai.request.model is \"llama(\"; use a valid RE2 expression",
		},
		"an expression that closes the surrounding group": {
			[]any{valid("match_regexp", map[string]any{"m": "llama)|(?:qwen"})}, "`match_regexp` of m is \"llama)|(?:qwen\"; use a valid RE2 expression: error parsing regexp: unexpected )",
		},
		"too many": {slices.Repeat([]any{valid("name", "a")}, 65), "`slos` has 65 entries; the maximum is 64"},
		"attribute twice": {
			[]any{func() map[string]any {
				slo := valid("match", map[string]any{"a": "b"})
				slo["match_regexp"] = map[string]any{"a": "c"}
				return slo
			}()}, "`match` and `match_regexp` both have a; remove one",
		},
		"empty range":       {[]any{valid("match_range", map[string]any{"a": map[string]any{}})}, "`match_range` of a has neither `min` nor `max`; set one of them"},
		"range of nothing":  {[]any{valid("match_range", map[string]any{"a": map[string]any{"min": 2, "max": 2}})}, "`match_range` of a has `min` 2 and `max` 2; use a `max` above `min`"},
		"range up to 0":     {[]any{valid("match_range", map[string]any{"a": map[string]any{"max": 0}})}, "`match_range` of a has `min` 0 and `max` 0"},
		"range from -1":     {[]any{valid("match_range", map[string]any{"a": map[string]any{"min": -1, "max": 2}})}, "`match_range` of a has `min` -1; use 0 or more"},
		"range up to NaN":   {[]any{valid("match_range", map[string]any{"a": map[string]any{"max": math.NaN()}})}, "use a `max` above `min`"},
		"range in words":    {[]any{valid("match_range", map[string]any{"a": map[string]any{"min": "1k"}})}, "`slos::0::match_range::a::min` is \"1k\"; use a number"},
		"range as a list":   {[]any{valid("match_range", map[string]any{"a": []any{0, 1000}})}, "`slos::0::match_range::a` is a list; use a section with the keys min, max"},
		"unknown key of it": {[]any{valid("match_range", map[string]any{"gen_ai.usage.input_tokens": map[string]any{"from": 1}})}, "unknown key \"from\" in `slos::0::match_range::gen_ai.usage.input_tokens`; valid keys: min, max"},
		"attribute with a value and a range": {
			[]any{func() map[string]any {
				slo := valid("match", map[string]any{"a": "b"})
				slo["match_range"] = map[string]any{"a": map[string]any{"min": 1}}
				return slo
			}()}, "`match` and `match_range` both have a; remove one",
		},
		"unknown vantage": {
			[]any{valid("match", map[string]any{names.Vantage: "moon"})}, "`match` of tokenpulse.vantage is \"moon\"; valid values: client, gateway, server, engine",
		},
		"unknown key": {[]any{valid("treshold", "50ms")}, "treshold"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, map[string]any{"slos": test.slos})
			require.ErrorContains(t, err, test.message)
		})
	}
}

func TestConfig_SLOOfTheContract(t *testing.T) {
	conf := confmap.NewFromStringMap(map[string]any{"slos": []any{map[string]any{
		"name": "chat-tpot", "indicator": "time_per_output_token", "threshold": "50ms", "match": map[string]any{"gen_ai.operation.name": "chat"},
	}}})
	cfg := annotate.DefaultConfig()
	require.NoError(t, conf.Unmarshal(cfg))
	require.Equal(t, map[string]string{"gen_ai.operation.name": "chat"}, cfg.SLOs[0].Match)
	rules, err := judge.NewRules(cfg.SLOs, false)
	require.NoError(t, err)
	require.Equal(t, 0.05, rules.Definitions()[0].Threshold)
}
