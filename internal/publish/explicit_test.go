// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// seen returns a request that a client saw.
func seen(seconds float64, outcome string) map[string]any {
	return map[string]any{
		"tokenpulse.vantage": "client", "tokenpulse.outcome": outcome, "tokenpulse.request.duration": seconds,
		"gen_ai.usage.input_tokens": 5, "gen_ai.request.model": "llama", "server.address": "gw", "server.port": "443",
	}
}

// onlyConventions switches all metrics off but these of the conventions.
func onlyConventions(temporality Temporality, names ...string) func(*Config) {
	return func(c *Config) {
		c.Temporality = temporality
		c.Shared.Conventions = conventions.Config{GenAI: []string{"latest"}}
		c.Shared.Metrics = everyMetric()
		for name := range c.Shared.Metrics {
			c.Shared.Metrics[name] = keeper.Metric{}
		}
		for _, name := range conventions.Names("latest") {
			c.Shared.Metrics[name] = keeper.Metric{}
		}
		for _, name := range names {
			c.Shared.Metrics[name] = keeper.Metric{Enabled: true}
		}
	}
}

const (
	duration = "gen_ai.client.inference.duration"
	of       = "gen_ai.request.model=llama,server.address=gw,server.port=443"
)

func TestFlush_SendsConventionsWithExplicitBuckets(t *testing.T) {
	h := newHarness(t, onlyConventions(Cumulative, duration))
	h.consume(t, 103, seen(0.5, "success"), seen(200, "success"), seen(0.01, "error"))
	require.Equal(t, []string{
		duration + "{error.type=_OTHER," + of + "} 102.999..102.999 n=0 sum=0",
		duration + "{error.type=_OTHER," + of + "} 102.999..115 n=1 sum=0.01 0.01..0.01 0.01:1 exemplar=0.01@103",
		duration + "{" + of + "} 102.999..102.999 n=0 sum=0",
		duration + "{" + of + "} 102.999..115 n=2 sum=200.5 0.5..200 0.64:1 inf:1 exemplar=200@103 exemplar=0.5@103",
	}, h.flushed(t, 115))
	h.consume(t, 118, seen(0.5, "success"))
	require.Contains(t, h.flushed(t, 130), duration+"{"+of+"} 102.999..130 n=3 sum=201 0.5..200 0.64:2 inf:1 exemplar=0.5@118")
}

func TestFlush_SendsTheNewValuesOfConventionsAsDelta(t *testing.T) {
	const input = "gen_ai.client.inference.usage.input_tokens"
	h := newHarness(t, onlyConventions(Delta, duration, input))
	h.consume(t, 103, seen(0.5, "success"), seen(200, "success"))
	require.Equal(t, []string{
		duration + "{" + of + "} 100..115 n=2 sum=200.5 0.64:1 inf:1 exemplar=200@103 exemplar=0.5@103",
		input + "{gen_ai.request.model=llama,gen_ai.token.modality=unknown,server.address=gw,server.port=443} 100..115 10",
	}, h.flushed(t, 115))
	require.Empty(t, h.flushed(t, 120), "no new requests")
	h.consume(t, 121, seen(0.5, "success"))
	h.to.refuses = true
	h.seconds = 125
	require.ErrorIs(t, h.flush(t.Context()), errRefused)
	h.to.refuses = false
	require.Equal(t, []string{
		duration + "{" + of + "} 120..130 n=1 sum=0.5 0.64:1 exemplar=0.5@121",
		input + "{gen_ai.request.model=llama,gen_ai.token.modality=unknown,server.address=gw,server.port=443} 120..130 5",
	}, h.flushed(t, 130))
}

func TestFlush_OmitsConventionsWithoutNewValues(t *testing.T) {
	const served = "gen_ai.server.request.duration"
	h := newHarness(t, onlyConventions(Delta, duration, served))
	h.consume(t, 103, seen(0.5, "success"))
	h.flushed(t, 115)
	request := seen(0.5, "success")
	request["tokenpulse.vantage"] = "engine"
	h.consume(t, 116, request)
	require.Equal(t, []string{served + "{" + of + "} 115..120 n=1 sum=0.5 0.64:1 exemplar=0.5@116"}, h.flushed(t, 120))
	require.Equal(t, 1, h.to.AllMetrics()[0].MetricCount())
}

// The conventions have an integer for the port.
func TestFlush_SendsThePortAsInteger(t *testing.T) {
	h := newHarness(t, onlyConventions(Delta, duration))
	h.consume(t, 103, seen(0.5, "success"))
	h.flushed(t, 115)
	port := pcommon.NewValueEmpty()
	each(h.to.AllMetrics()[0], func(m pmetric.Metric, _ point) {
		port, _ = m.Histogram().DataPoints().At(0).Attributes().Get("server.port")
	})
	require.EqualValues(t, 443, port.Int())
}

// A series of conventions may have the key of one of ours.
func TestFlush_KeepsSeriesWithEqualKeysApart(t *testing.T) {
	h := newHarness(t, func(c *Config) {
		onlyConventions(Delta, duration, "tokenpulse.requests")(c)
		c.Shared.Series.Dimensions = series.DimensionsOf("gen_ai.request.model")
		c.Shared.Conventions.Attributes = c.Shared.Series.Dimensions.Names()
	})
	request := map[string]any{"tokenpulse.outcome": "success", "gen_ai.request.model": "llama"}
	client := seen(0.5, "success")
	h.consume(t, 103, request, client)
	require.Equal(t, []string{
		duration + "{gen_ai.request.model=llama} 100..115 n=1 sum=0.5 0.64:1 exemplar=0.5@103",
		"tokenpulse.requests{gen_ai.request.model=llama,outcome=success,vantage=client} 100..115 1",
		"tokenpulse.requests{gen_ai.request.model=llama,outcome=success} 100..115 1",
	}, h.flushed(t, 115))
	require.Empty(t, h.flushed(t, 120))
}
