// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package fleet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
)

// A real Prometheus scrapes three workers behind a gateway, and one Collector that got
// the same streams. The sums over the workers equal the numbers of the one Collector.
func TestFleetExampleBalanced_SumsInPrometheusEqualOneCollector(t *testing.T) {
	traffic := newFleetTraffic(t)
	// Streams without an end expire soon in both, so that all requests are counted.
	expiry := []string{"--set", "receivers.token_stream.idle_timeout=2s", "--set", "receivers.token_stream.first_token_timeout=2s"}
	f := startFleet(t, 3, expiry...)
	single := collector.Start(t, collector.Example(t, "quickstart.yaml"), expiry...)
	server := prometheusOf(t, map[string][]*collector.Collector{"fleet": f.workers, "single": {single}})

	recording := collector.WriteFile(t, t.TempDir(), "streams.jsonl", string(traffic.all))
	for _, endpoint := range []string{f.gateway.HTTP, single.HTTP} {
		collector.Run(t, collector.Built(t, "tokenpulse"), "replay", recording, "--transport", "protobuf", "--endpoint", endpoint)
	}
	at := momentWhen(t, server, fmt.Sprintf(`count(sum by (instance) (tokenpulse_requests_total{job="fleet"})) == 3
		and sum(tokenpulse_requests_total{job="fleet"}) == %[1]d and sum(tokenpulse_requests_total{job="single"}) == %[1]d`, traffic.streams))

	compared := map[dto.MetricType]int{}
	for name, family := range exposition.Scrape(t, single) {
		kind := family.GetType()
		if !strings.HasPrefix(name, "tokenpulse_") || kind != dto.MetricType_COUNTER && kind != dto.MetricType_HISTOGRAM {
			continue
		}
		want := sums(t, server, name, "single", at)
		require.NotEmpty(t, want, name)
		for labels, w := range want {
			require.Equal(t, kind == dto.MetricType_HISTOGRAM, w.count > 0, "%s%s is a native histogram with values", name, labels)
		}
		requireSameSums(t, name, want, sums(t, server, name, "fleet", at))
		compared[kind] += len(want)
	}
	t.Logf("compared %d native histograms and %d counters", compared[dto.MetricType_HISTOGRAM], compared[dto.MetricType_COUNTER])
	require.Greater(t, compared[dto.MetricType_HISTOGRAM], 20)
	require.Greater(t, compared[dto.MetricType_COUNTER], 20)
}

// fleetTraffic holds the NDJSON events of a number of streams.
type fleetTraffic struct {
	all     []byte
	streams int
}

// newFleetTraffic generates streams of every outcome. It adds two streams
// whose two chunks arrive at the same time.
func newFleetTraffic(t *testing.T) *fleetTraffic {
	t.Helper()
	file := filepath.Join(t.TempDir(), "all.jsonl")
	collector.Run(t, collector.Built(t, "tokenpulse"), "generate", "--output", file, "--requests", "400", "--rate", "50", "--seed", "5",
		"--cancel-ratio", "0.1", "--error-ratio", "0.1", "--incomplete-ratio", "0.1",
		"--one-token-ratio", "0.1", "--reasoning-only-ratio", "0.1")
	all, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, id := range []string{"at-once-1", "at-once-2"} {
		all = fmt.Appendf(all, `{"event":"start","stream_id":%[1]q,"time_unix_nano":"1767225600000000000","resource":{"service.name":"at-once"}}
{"event":"chunk","stream_id":%[1]q,"time_unix_nano":"1767225601000000000"}
{"event":"chunk","stream_id":%[1]q,"time_unix_nano":"1767225601000000000"}
{"event":"end","stream_id":%[1]q,"time_unix_nano":"1767225602000000000"}
`, id)
	}

	return &fleetTraffic{all, bytes.Count(all, []byte(`"event":"start"`))}
}

// A summed series: a counter's value, or the count, sum and buckets of a native
// histogram. Buckets are in Prometheus' form: kind of bounds, bounds and count.
type summed struct {
	value      float64
	count, sum float64
	buckets    [][4]string
}

// momentWhen waits until a query returns a result, and returns the time of that query.
// After a failed scrape, as on a busy machine, a Collector's series are missing. At this
// moment they are not.
func momentWhen(t *testing.T, p *promserver.Server, query string) (at string) {
	t.Helper()
	require.Eventually(t, func() bool {
		at = strconv.FormatInt(time.Now().Unix(), 10)
		return len(p.ResultsAt(t, query, at)) > 0
	}, 2*collector.Patience, 200*time.Millisecond, query)
	return at
}

// sums returns the sum of a metric over the members of a job, by its other labels.
func sums(t *testing.T, p *promserver.Server, metric, job, at string) map[string]summed {
	t.Helper()
	all := map[string]summed{}
	for _, series := range p.ResultsAt(t, fmt.Sprintf(`sum without (instance, job) (%s{job=%q})`, metric, job), at) {
		var s summed
		if series.Value[1] != nil {
			s.value = promserver.Number(t, series.Value)
		}
		if histogram, ok := series.Histogram[1].(map[string]any); ok {
			s.count, s.sum = promserver.Parsed(t, histogram["count"].(string)), promserver.Parsed(t, histogram["sum"].(string))
			for _, bucket := range histogram["buckets"].([]any) {
				fields := bucket.([]any)
				s.buckets = append(s.buckets, [4]string{
					strconv.Itoa(int(fields[0].(float64))), fields[1].(string), fields[2].(string), fields[3].(string),
				})
			}
		}
		all[fmt.Sprint(series.Metric)] = s
	}
	return all
}

// requireSameSums compares counts and buckets exactly. Sums add floats in another order.
func requireSameSums(t *testing.T, metric string, want, got map[string]summed) {
	t.Helper()
	require.Len(t, got, len(want), metric)
	for labels, w := range want {
		g, found := got[labels]
		require.True(t, found, "the fleet has no %s%s", metric, labels)
		require.InDelta(t, w.value, g.value, 1e-9*w.value, "value of %s%s", metric, labels)
		require.Equal(t, w.count, g.count, "count of %s%s", metric, labels)
		require.InDelta(t, w.sum, g.sum, 1e-9*w.sum, "sum of %s%s", metric, labels)
		require.Equal(t, w.buckets, g.buckets, "buckets of %s%s", metric, labels)
	}
}
