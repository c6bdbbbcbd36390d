// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// A real Prometheus scrapes the exporter. Its quantiles are as accurate as the
// buckets: 1.1% wide with native histograms, or the width of the classic buckets.
func TestPrometheusScrape_QuantilesAreWithinOneBucket(t *testing.T) {
	t.Parallel()
	program := testenv.Program(t, "prometheus")
	requests := reference.Recording(t)
	c := startCollector(t, filepath.Join(testenv.Root(t), "examples", "quickstart.yaml"), append([]string{"--config", writeFile(t, t.TempDir(), "every.yaml", everyMetric)}, fullDetail...)...)
	run(t, built(t, "tokengen"), "replay", testenv.UnzipRecording(t), "--transport", "protobuf", "--endpoint", c.http)

	native := startPrometheus(t, program, c.metrics, "native-histograms,exemplar-storage")
	classic := startPrometheus(t, program, c.metrics, "exemplar-storage")
	native.waitUntil(t, "tokenpulse_requests_total")
	classic.waitUntil(t, "tokenpulse_requests_total")

	for name, values := range pooled(requests) {
		metric := "tokenpulse_" + name + "_seconds"
		selector := `{outcome="success"}`
		count := float64(len(values))
		require.InDelta(t, count, native.query(t, "histogram_count("+metric+selector+")"), 0, name)
		require.InDelta(t, count, classic.query(t, metric+"_count"+selector), 0, name)
		for _, q := range []float64{0.5, 0.9, 0.95, 0.99} {
			exact := reference.NearestRank(values, q)
			fromNative := native.query(t, fmt.Sprintf("histogram_quantile(%v, %s%s)", q, metric, selector))
			require.InEpsilon(t, exact, fromNative, 0.011, "%s %v, native", name, q)

			low, high := classic.bucketAround(t, metric, exact)
			fromClassic := classic.query(t, fmt.Sprintf("histogram_quantile(%v, %s_bucket%s)", q, metric, selector))
			require.GreaterOrEqual(t, fromClassic, low, "%s %v, classic", name, q)
			require.LessOrEqual(t, fromClassic, high, "%s %v, classic", name, q)
			t.Logf("%-22s p%-3.0f exact %.6f  native %.6f  classic %.6f (bucket %v to %v)",
				name, q*100, exact, fromNative, fromClassic, low, high)
		}
	}
	for _, server := range []*prometheus{native, classic} {
		require.NotEmpty(t, server.exemplarTraces(t, exemplarsOfTPOT), "histograms have exemplars with trace ids")
	}
}

type prometheus struct {
	*process
	address string
	native  bool // it stores native histograms
}

func startPrometheus(t *testing.T, program, target, features string, ruleFiles ...string) *prometheus {
	t.Helper()
	rules, err := json.Marshal(ruleFiles)
	require.NoError(t, err)
	return runPrometheus(t, program, fmt.Sprintf(`
rule_files: %s
scrape_configs:
  - job_name: tokenpulse
    scrape_interval: 500ms
    scrape_timeout: 500ms
    static_configs: [{targets: [%q]}]
`, rules, target), "--enable-feature", features)
}

func runPrometheus(t *testing.T, program, config string, flags ...string) *prometheus {
	t.Helper()
	return servePrometheus(t, program, t.TempDir(), config, flags...)
}

// servePrometheus runs Prometheus with the data in a folder.
func servePrometheus(t *testing.T, program, data, config string, flags ...string) *prometheus {
	t.Helper()
	p := &prometheus{address: freeAddress(t)}
	p.process = start(t, program, append([]string{
		"--config.file", writeFile(t, t.TempDir(), "prometheus.yml", config),
		"--storage.tsdb.path", data, "--web.listen-address", p.address,
	}, flags...)...)
	p.waitFor(t, "http://"+p.address+"/-/ready")
	return p
}

// waitUntil repeats a query until it returns a result. Rules may need samples of half
// a minute, and a busy machine leaves evaluations out.
func (p *prometheus) waitUntil(t *testing.T, query string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return len(p.resultsAt(t, query, "")) > 0
	}, 4*patience, 100*time.Millisecond, query)
}

func (p *prometheus) ask(t *testing.T, what string, parameters url.Values, answer any) {
	t.Helper()
	body := get(t, fmt.Sprintf("http://%s/api/v1/%s?%s", p.address, what, parameters.Encode()), "application/json")
	require.NoError(t, json.Unmarshal(body, answer))
}

// matrix returns the series that Prometheus answers with to a question whose answers have samples of several times.
func (p *prometheus) matrix(t *testing.T, what string, parameters url.Values) []series {
	t.Helper()
	var answer struct {
		Data struct{ Result []series }
	}
	p.ask(t, what, parameters, &answer)
	return answer.Data.Result
}

// result is one sample of a query's result: a time, and a number or a native histogram.
type result struct {
	Metric           map[string]string
	Value, Histogram [2]any
}

// resultsAt returns the result of a query at a Unix time, or now if it is empty.
func (p *prometheus) resultsAt(t *testing.T, query, at string) []result {
	t.Helper()
	var answer struct {
		Data struct{ Result []result }
	}
	p.ask(t, "query", url.Values{"query": {query}, "time": {at}}, &answer)
	return answer.Data.Result
}

// query returns the only number of a query's result.
func (p *prometheus) query(t *testing.T, query string) float64 {
	t.Helper()
	results := p.resultsAt(t, query, "")
	require.Len(t, results, 1, query)
	return number(t, results[0].Value)
}

// bucketAround returns the bounds of the classic bucket that contains a value.
func (p *prometheus) bucketAround(t *testing.T, metric string, value float64) (low, high float64) {
	t.Helper()
	var answer struct {
		Data []string
	}
	p.ask(t, "label/le/values", url.Values{"match[]": {metric + "_bucket"}}, &answer)
	var bounds []float64
	for _, text := range answer.Data {
		bounds = append(bounds, parsed(t, text))
	}
	slices.Sort(bounds)
	above, _ := slices.BinarySearch(bounds, value)
	if above > 0 {
		low = bounds[above-1]
	}
	return low, bounds[above]
}

// bounds are the lowest and the highest value that a number can have.
type bounds struct{ low, high float64 }

func exactly(value float64) bounds { return bounds{value, value} }

// requireQuantile checks that a quantile is as accurate as the buckets that Prometheus stores.
func (p *prometheus) requireQuantile(t *testing.T, metric string, want bounds, got float64) {
	t.Helper()
	low, high := want.low*(1-0.011), want.high*(1+0.011)
	if !p.native {
		low, _ = p.bucketAround(t, metric, want.low)
		_, high = p.bucketAround(t, metric, want.high)
	}
	require.GreaterOrEqual(t, got, low, metric)
	require.LessOrEqual(t, got, high, metric)
}

const exemplarsOfTPOT = `{__name__=~"tokenpulse_time_per_output_token_seconds.*"}`

// exemplarTraces returns the trace IDs of the exemplars that a query selects.
func (p *prometheus) exemplarTraces(t *testing.T, query string) []string {
	t.Helper()
	var answer struct {
		Data []struct {
			Exemplars []struct {
				Labels map[string]string
			}
		}
	}
	p.ask(t, "query_exemplars", url.Values{
		"query": {query},
		"start": {"1"}, "end": {strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)},
	}, &answer)
	var traces []string
	for _, series := range answer.Data {
		for _, exemplar := range series.Exemplars {
			require.Len(t, exemplar.Labels["trace_id"], 32)
			require.Len(t, exemplar.Labels["span_id"], 16)
			traces = append(traces, exemplar.Labels["trace_id"])
		}
	}
	return traces
}
