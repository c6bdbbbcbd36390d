// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// ofConventions returns the metrics of conventions that an exporter publishes, without gen_ai_: counters, and
// number and sum of the values of histograms.
func ofConventions(t *testing.T, e *tokenSLI) map[string]string {
	t.Helper()
	shown := e.families(t)
	all := map[string]string{}
	for _, family := range shown {
		name, ours := strings.CutPrefix(family.GetName(), "gen_ai_")
		for _, m := range family.Metric {
			id := name + "{" + strings.Join(labelsOf(m), ",") + "}"
			switch {
			case !ours:
			case m.Histogram == nil:
				all[id] = fmt.Sprint(value(m))
			default:
				all[id] = fmt.Sprint(m.Histogram.GetSampleCount(), " ", m.Histogram.GetSampleSum())
				require.Positive(t, m.Histogram.GetSchema(), "native")
			}
		}
	}
	return all
}

// call returns a request of which the exporter reads everything, with changes. A nil value removes a key.
func call(vantage string, changes map[string]any) map[string]any {
	attributes := with(map[string]any{"tokenpulse.vantage": vantage, "gen_ai.response.model": "llama-1", "server.address": "gw", "server.port": 443})
	for key, v := range changes {
		if attributes[key] = v; v == nil {
			delete(attributes, key)
		}
	}
	return attributes
}

func TestConventions_PublishWhatTheyDefine(t *testing.T) {
	const of = "gen_ai_operation_name=chat,gen_ai_provider_name=vllm,gen_ai_request_model=llama,gen_ai_response_model=llama-1"
	const at, typed, modality = ",server_address=gw,server_port=443", ",gen_ai_token_type=", ",gen_ai_token_modality=unknown"
	both := []string{"v1.41", "latest"}
	narrow := []string{"gen_ai.request.model"}
	failed := map[string]any{"tokenpulse.outcome": "error", "error.type": "overloaded"}
	for name, test := range map[string]struct {
		config conventions.Config
		off    []string
		max    int
		spans  []map[string]any
		want   map[string]string
	}{
		"v1.41": {config: conventions.Config{GenAI: both[:1]}, spans: []map[string]any{call("client", nil), call("engine", nil)}, want: map[string]string{
			"client_operation_duration_seconds{" + of + at + "}":              "1 2",
			"client_operation_time_to_first_chunk_seconds{" + of + at + "}":   "1 0.5",
			"client_operation_time_per_output_chunk_seconds{" + of + at + "}": "2 0.79",
			"client_token_usage{" + of + typed + "input" + at + "}":           "1 100",
			"client_token_usage{" + of + typed + "output" + at + "}":          "1 76",
			"server_request_duration_seconds{" + of + at + "}":                "1 2",
			"server_time_to_first_token_seconds{" + of + at + "}":             "1 0.5",
			"server_time_per_output_token_seconds{" + of + at + "}":           "1 0.02",
		}},
		"latest": {config: conventions.Config{GenAI: both[1:]}, spans: []map[string]any{call("gateway", nil), call("server", nil)}, want: map[string]string{
			"client_inference_duration_seconds{" + of + at + "}":                                "1 2",
			"client_inference_time_to_first_chunk_seconds{" + of + at + "}":                     "1 0.5",
			"client_inference_time_per_output_chunk_seconds{" + of + at + "}":                   "2 0.79",
			"client_inference_operation_input_tokens{" + of + at + "}":                          "1 100",
			"client_inference_operation_output_tokens{" + of + at + "}":                         "1 76",
			"client_inference_usage_input_tokens_total{" + of + modality + at + "}":             "100",
			"client_inference_usage_output_tokens_total{" + of + modality + at + "}":            "76",
			"client_inference_usage_cache_read_input_tokens_total{" + of + modality + at + "}":  "64",
			"client_inference_usage_cache_write_input_tokens_total{" + of + modality + at + "}": "32",
			"client_inference_usage_reasoning_output_tokens_total{" + of + modality + at + "}":  "16",
			"server_request_duration_seconds{" + of + at + "}":                                  "1 2",
			"server_time_to_first_token_seconds{" + of + at + "}":                               "1 0.5",
			"server_time_per_output_token_seconds{" + of + at + "}":                             "1 0.02",
		}},
		"a name of both generations appears once": {
			config: conventions.Config{GenAI: both, Vantages: []string{"engine"}, Attributes: narrow}, spans: []map[string]any{call("client", nil), call("engine", nil)},
			want: map[string]string{
				"server_request_duration_seconds{gen_ai_request_model=llama}":      "1 2",
				"server_time_to_first_token_seconds{gen_ai_request_model=llama}":   "1 0.5",
				"server_time_per_output_token_seconds{gen_ai_request_model=llama}": "1 0.02",
			},
		},
		"a call that client, gateway and engine saw": {
			config: conventions.Config{GenAI: both[:1], Vantages: []string{"client", "engine"}, Attributes: narrow},
			off:    []string{"gen_ai.client.operation.time_per_output_chunk", "gen_ai.client.token.usage", "gen_ai.server.time_per_output_token", "gen_ai.client.operation.time_to_first_chunk"},
			spans: []map[string]any{
				call("client", map[string]any{"tokenpulse.request.duration": 4.0}), call("gateway", map[string]any{"tokenpulse.request.duration": 3.0}), call("engine", nil),
			},
			want: map[string]string{
				"client_operation_duration_seconds{gen_ai_request_model=llama}":  "1 4",
				"server_request_duration_seconds{gen_ai_request_model=llama}":    "1 2",
				"server_time_to_first_token_seconds{gen_ai_request_model=llama}": "1 0.5",
			},
		},
		"a call that did not ask for a stream": {
			config: conventions.Config{GenAI: both[:1], Attributes: narrow}, off: []string{"gen_ai.client.token.usage"},
			spans: []map[string]any{call("client", map[string]any{"gen_ai.request.stream": false})},
			want:  map[string]string{"client_operation_duration_seconds{gen_ai_request_model=llama}": "1 2"},
		},
		"failed requests": {
			config: conventions.Config{GenAI: both[:1], Vantages: []string{"server"}, Attributes: narrow},
			spans: []map[string]any{
				call("server", failed), call("server", map[string]any{"tokenpulse.outcome": "incomplete"}), call("server", map[string]any{"tokenpulse.outcome": "cancelled"}),
				call("server", map[string]any{"tokenpulse.outcome": "error", "error.type": "The prompt was too long"}),
			},
			want: map[string]string{
				"server_request_duration_seconds{error_type=overloaded,gen_ai_request_model=llama}": "1 2",
				"server_request_duration_seconds{error_type=_OTHER,gen_ai_request_model=llama}":     "2 4",
				"server_request_duration_seconds{gen_ai_request_model=llama}":                       "1 2",
			},
		},
		"a failed call without usage, and a port without an address": {
			config: conventions.Config{GenAI: both[1:]}, off: []string{"gen_ai.client.inference.usage.reasoning.output_tokens"},
			spans: []map[string]any{{
				"tokenpulse.vantage": "client", "tokenpulse.outcome": "error", "tokenpulse.request.duration": 1.0, "error.type": "timeout", "server.port": 443,
			}},
			want: map[string]string{
				"client_inference_duration_seconds{error_type=timeout}":                                "1 1",
				"client_inference_operation_input_tokens{error_type=timeout}":                          "1 0",
				"client_inference_operation_output_tokens{error_type=timeout}":                         "1 0",
				"client_inference_usage_input_tokens_total{gen_ai_token_modality=unknown}":             "0",
				"client_inference_usage_output_tokens_total{gen_ai_token_modality=unknown}":            "0",
				"client_inference_usage_cache_read_input_tokens_total{gen_ai_token_modality=unknown}":  "0",
				"client_inference_usage_cache_write_input_tokens_total{gen_ai_token_modality=unknown}": "0",
			},
		},
		"modalities": {
			config: conventions.Config{GenAI: both[1:], Attributes: narrow},
			off: []string{
				"gen_ai.client.inference.duration", "gen_ai.client.inference.time_to_first_chunk", "gen_ai.client.inference.time_per_output_chunk",
				"gen_ai.client.inference.usage.cache_write.input_tokens", "gen_ai.client.inference.usage.reasoning.output_tokens",
			},
			spans: []map[string]any{call("client", map[string]any{
				"gen_ai.usage.text.input_tokens": 70, "gen_ai.usage.image.input_tokens": 20, // of 100
				"gen_ai.usage.text.output_tokens": 80, "gen_ai.usage.audio.output_tokens": 5, // of 76
				"gen_ai.usage.image.cache_read.input_tokens": 64, // all
			})},
			want: map[string]string{
				"client_inference_operation_input_tokens{gen_ai_request_model=llama}":                                          "1 100",
				"client_inference_operation_output_tokens{gen_ai_request_model=llama}":                                         "1 76",
				"client_inference_usage_input_tokens_total{gen_ai_request_model=llama,gen_ai_token_modality=text}":             "70",
				"client_inference_usage_input_tokens_total{gen_ai_request_model=llama,gen_ai_token_modality=image}":            "20",
				"client_inference_usage_input_tokens_total{gen_ai_request_model=llama,gen_ai_token_modality=unknown}":          "10",
				"client_inference_usage_output_tokens_total{gen_ai_request_model=llama,gen_ai_token_modality=text}":            "76",
				"client_inference_usage_cache_read_input_tokens_total{gen_ai_request_model=llama,gen_ai_token_modality=image}": "64",
			},
		},
		"attribute sets without error types count toward the limit": {
			config: conventions.Config{GenAI: both[:1], Vantages: []string{"server", "client"}, Attributes: narrow}, max: 1,
			off: []string{"gen_ai.server.time_per_output_token", "gen_ai.server.time_to_first_token"},
			spans: []map[string]any{
				call("server", nil), call("server", failed), call("server", map[string]any{"gen_ai.request.model": "other"}),
				call("server", map[string]any{"gen_ai.request.model": "third", "tokenpulse.outcome": "error", "error.type": "timeout"}),
			},
			want: map[string]string{
				"server_request_duration_seconds{gen_ai_request_model=llama}":                       "1 2",
				"server_request_duration_seconds{error_type=overloaded,gen_ai_request_model=llama}": "1 2",
				"server_request_duration_seconds{otel_metric_overflow=true}":                        "1 2",
				"server_request_duration_seconds{error_type=timeout,otel_metric_overflow=true}":     "1 2",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, telemetry := unstarted(t, func(c *Config) {
				c.Shared.Conventions, c.Shared.Metrics = test.config, map[string]keeper.Metric{}
				for _, name := range test.off {
					c.Shared.Metrics[name] = keeper.Metric{}
				}
				if test.max > 0 {
					c.Shared.Series.MaxSeries = test.max
				}
				require.NoError(t, c.Validate())
			})
			require.NoError(t, e.consume(t.Context(), batch(test.spans...)))
			require.Equal(t, test.want, ofConventions(t, e))
			require.EqualValues(t, 1, keepertest.Value(t, telemetry, "token_sli_conventions_series"))
			require.EqualValues(t, max(0, 2*test.max), keepertest.Value(t, telemetry, "token_sli_conventions_overflow"))
		})
	}
}

// Of many error types, the later ones share _OTHER.
func TestConventions_LimitErrorTypes(t *testing.T) {
	e, _ := unstarted(t, func(c *Config) {
		c.Shared.Conventions = conventions.Config{GenAI: []string{"latest"}, Attributes: []string{"gen_ai.request.model"}}
		c.Shared.Metrics = map[string]keeper.Metric{"gen_ai.server.request.duration": {Enabled: true}}
	})
	var spans []map[string]any
	for i := range 50 {
		spans = append(spans, call("server", map[string]any{"tokenpulse.outcome": "error", "error.type": fmt.Sprint("e-", i)}))
	}
	require.NoError(t, e.consume(t.Context(), batch(spans...)))
	got := ofConventions(t, e)
	require.Len(t, got, 33)
	require.Equal(t, "1 2", got["server_request_duration_seconds{error_type=e-31,gen_ai_request_model=llama}"])
	require.Equal(t, "18 36", got["server_request_duration_seconds{error_type=_OTHER,gen_ai_request_model=llama}"])
}

// The values are those of our metrics, of the same requests.
func TestConventions_AddUpToOurMetrics(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	e, _ := unstarted(t, func(c *Config) {
		everyMetric(c)
		c.Shared.Conventions = conventions.Config{GenAI: []string{"v1.41", "latest"}}
	})
	for range 20 {
		traces := manySpans(random, 20)
		for _, span := range traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			span.Attributes().PutStr("tokenpulse.vantage", []string{"client", "gateway", "server", "engine"}[random.IntN(4)])
		}
		require.NoError(t, e.consume(t.Context(), traces))
	}
	shown := e.families(t)
	// total returns number and sum of the values of a metric's series that have one of the values of each label.
	total := func(name string, labels map[string][]string) [2]float64 {
		t.Helper()
		sum, found := [2]float64{}, false
		for _, family := range shown {
			for _, m := range family.Metric {
				if family.GetName() == name && hasAll(m, labels) {
					found = true
					sum[0] += float64(m.Histogram.GetSampleCount())
					sum[1] += m.Histogram.GetSampleSum() + value(m)
				}
			}
		}
		require.True(t, found, name)
		return sum
	}
	compared := 0
	for _, row := range conventions.Table {
		ours := map[string][]string{"vantage": {"client", "gateway"}}
		if row.Side == conventions.Server {
			ours["vantage"] = []string{"server", "engine"}
		}
		if row.Successful {
			ours["outcome"] = []string{"success"}
		}
		theirs := map[string][]string{}
		if row.TokenType != "" {
			theirs["gen_ai_token_type"] = []string{row.TokenType}
		}
		number, kind := row.Number.Row(), dto.MetricType_HISTOGRAM
		if number.Type != "" {
			ours["type"], kind = []string{number.Type}, dto.MetricType_COUNTER
		}
		counted := total(translated(t, number.Metric, kind), ours)
		for _, name := range row.Names {
			if name == "" {
				continue
			}
			kind := dto.MetricType_HISTOGRAM
			if row.Bounds == nil {
				kind = dto.MetricType_COUNTER
			}
			got := total(translated(t, numbers.Metric{Name: name, Unit: row.Unit}, kind), theirs)
			require.InDelta(t, counted[1], got[1], 1e-9, name)
			if number.Type == "" {
				require.InDelta(t, counted[0], got[0], 0, name)
			}
			compared++
		}
	}
	require.Equal(t, 21, compared)
}

func hasAll(m *dto.Metric, labels map[string][]string) bool {
	have := labelsOf(m)
	for label, values := range labels {
		if !slices.ContainsFunc(values, func(v string) bool { return slices.Contains(have, label+"="+v) }) {
			return false
		}
	}
	return true
}

func translated(t *testing.T, m numbers.Metric, kind dto.MetricType) string {
	t.Helper()
	family, err := newFamily(&m, kind)
	require.NoError(t, err)
	return family.GetName()
}

// Buckets are those that the conventions advise.
func TestConventions_HaveTheAdvisedBuckets(t *testing.T) {
	e, _ := unstarted(t, func(c *Config) { c.Shared.Conventions = conventions.Config{GenAI: []string{"v1.41"}} })
	require.NoError(t, e.consume(t.Context(), batch(call("client", nil), call("server", nil))))
	shown := e.families(t)
	bounds := map[string][]float64{}
	for _, family := range shown {
		for _, b := range family.Metric[0].GetHistogram().GetBucket() {
			bounds[family.GetName()] = append(bounds[family.GetName()], b.GetUpperBound())
		}
	}
	for name, want := range map[string][3]float64{ // the first two, and the last
		"gen_ai_client_operation_duration_seconds":    {.01, .02, 81.92},
		"gen_ai_client_token_usage":                   {1, 4, 67108864},
		"gen_ai_server_time_to_first_token_seconds":   {.001, .005, 10},
		"gen_ai_server_time_per_output_token_seconds": {.01, .025, 2.5},
	} {
		got := bounds[name]
		require.NotEmpty(t, got, name)
		require.Equal(t, want, [3]float64{got[0], got[1], got[len(got)-2]}, name)
	}
}

// An exporter that reads metrics of others ignores those of conventions: it has our own to count.
func TestConventions_OfProducersAreIgnored(t *testing.T) {
	e, telemetry := unstarted(t, nil)
	published := conventions.Config{GenAI: []string{"latest"}}
	p := newProducer(t, func(c *publish.Config) { c.Shared.Conventions = published })
	for _, metrics := range p.published(t, batch(call("client", nil))) {
		require.NoError(t, e.consumeMetrics(t.Context(), metrics))
	}
	require.Empty(t, ofConventions(t, e))
	require.Positive(t, keepertest.Values(t, telemetry, "token_sli_points_ignored", "reason")["foreign"])
}

// The table in docs/semconv.md is generated. To rewrite it:
//
//	go test ./exporter/tokensliexporter -run TestConventionsPage_IsUpToDate -update
func TestConventionsPage_IsUpToDate(t *testing.T) {
	var table strings.Builder
	table.WriteString("| v1.41 | latest | type, unit | our number | label | difference |\n|---|---|---|---|---|---|\n")
	for _, m := range conventions.Table {
		kind, label := "histogram", m.Label
		if m.Bounds == nil {
			kind = "counter"
		}
		require.Equal(t, m.Side == conventions.Server, strings.HasPrefix(cmp.Or(m.Names[0], m.Names[1]), "gen_ai.server."), "the page says so")
		if m.TokenType != "" {
			label += "=" + m.TokenType
		}
		var rules []string
		if m.Streaming {
			rules = append(rules, "Streaming only.")
		}
		if m.Successful {
			rules = append(rules, "Successful only.")
		}
		if m.Zero {
			rules = append(rules, "0 if unknown.")
		}
		rules = append(rules, m.Differs)
		number := m.Number.Row()
		ours := "`" + number.Metric.Name + "`"
		if number.Type != "" {
			ours += ", `type=\"" + number.Type + "\"`"
		}
		fmt.Fprintf(&table, "| %s | %s | %s, %s | %s | %s | %s |\n",
			quoted(m.Names[:1]), quoted(m.Names[1:]), kind, m.Unit, ours, quoted([]string{label}), strings.TrimSpace(strings.Join(rules, " ")))
	}
	testenv.RequireTables(t, "docs/semconv.md", map[string]string{"names": table.String()})
}
