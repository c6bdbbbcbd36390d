// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"testing"

	"github.com/stretchr/testify/require"
	autoscaling "k8s.io/api/autoscaling/v2"
)

// The metric is that of the adapter's rule, and the selector has labels that the exporter writes.
func TestHorizontalPodAutoscaler_UsesTheMetricOfTheAdapter(t *testing.T) {
	type rules struct {
		Rules struct {
			External []struct {
				SeriesQuery  string `json:"seriesQuery"`
				MetricsQuery string `json:"metricsQuery"`
				Resources    struct {
					Namespaced bool `json:"namespaced"`
				} `json:"resources"`
			} `json:"external"`
		} `json:"rules"`
	}
	rule := read[rules](t, "capacity/prometheus-adapter.yaml").Rules.External[0]
	require.False(t, rule.Resources.Namespaced, "the Collector is in another namespace")
	metric := read[autoscaling.HorizontalPodAutoscaler](t, "capacity/hpa.yaml").Spec.Metrics[0]
	require.Equal(t, autoscaling.ExternalMetricSourceType, metric.Type)
	require.Equal(t, rule.SeriesQuery, metric.External.Metric.Name)
	require.Equal(t, map[string]string{"gen_ai_request_model": "llama-3.1-8b", "slo": "all", "vantage": "engine"}, metric.External.Metric.Selector.MatchLabels)
	require.Equal(t, autoscaling.ValueMetricType, metric.External.Target.Type)
	require.InDelta(t, 0.8, metric.External.Target.Value.AsApproximateFloat64(), 1e-9)
}
