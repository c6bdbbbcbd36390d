// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheus tests what Prometheus makes of the Collector's metrics: queries, dashboards
// and alert rules.
package prometheus

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// A real Prometheus scrapes the exporter. Its quantiles are as accurate as the
// buckets: 1.1% wide with native histograms, or the width of the classic buckets.
func TestPrometheusScrape_QuantilesAreWithinOneBucket(t *testing.T) {
	t.Parallel()
	program := testenv.Program(t, "prometheus")
	requests := reference.Recording(t)
	c := collector.Start(t, filepath.Join(testenv.Root(t), "examples", "quickstart.yaml"), append([]string{"--config", collector.WriteFile(t, t.TempDir(), "every.yaml", collector.EveryMetric)}, collector.FullDetail...)...)
	collector.Run(t, collector.Built(t, "tokenpulse"), "replay", testenv.UnzipRecording(t), "--transport", "protobuf", "--endpoint", c.HTTP)

	native := promserver.Start(t, program, c.Metrics, "native-histograms,exemplar-storage")
	classic := promserver.Start(t, program, c.Metrics, "exemplar-storage")
	native.WaitUntil(t, "tokenpulse_requests_total")
	classic.WaitUntil(t, "tokenpulse_requests_total")

	for name, values := range tokenevents.Pooled(requests) {
		metric := "tokenpulse_" + name + "_seconds"
		selector := `{outcome="success"}`
		count := float64(len(values))
		require.InDelta(t, count, native.Query(t, "histogram_count("+metric+selector+")"), 0, name)
		require.InDelta(t, count, classic.Query(t, metric+"_count"+selector), 0, name)
		for _, q := range []float64{0.5, 0.9, 0.95, 0.99} {
			exact := reference.NearestRank(values, q)
			fromNative := native.Query(t, fmt.Sprintf("histogram_quantile(%v, %s%s)", q, metric, selector))
			require.InEpsilon(t, exact, fromNative, 0.011, "%s %v, native", name, q)

			low, high := classic.BucketAround(t, metric, exact)
			fromClassic := classic.Query(t, fmt.Sprintf("histogram_quantile(%v, %s_bucket%s)", q, metric, selector))
			require.GreaterOrEqual(t, fromClassic, low, "%s %v, classic", name, q)
			require.LessOrEqual(t, fromClassic, high, "%s %v, classic", name, q)
			t.Logf("%-22s p%-3.0f exact %.6f  native %.6f  classic %.6f (bucket %v to %v)",
				name, q*100, exact, fromNative, fromClassic, low, high)
		}
	}
	for _, server := range []*promserver.Server{native, classic} {
		require.NotEmpty(t, server.ExemplarTraces(t, exemplarsOfTPOT), "histograms have exemplars with trace ids")
	}
}

const exemplarsOfTPOT = `{__name__=~"tokenpulse_time_per_output_token_seconds.*"}`
