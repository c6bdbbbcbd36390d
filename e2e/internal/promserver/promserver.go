// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package promserver starts Prometheus servers and asks them.
package promserver

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// Start starts a server that scrapes one target twice a second.
func Start(t *testing.T, program, target, features string, ruleFiles ...string) *Server {
	t.Helper()
	rules, err := json.Marshal(ruleFiles)
	require.NoError(t, err)
	return Run(t, program, fmt.Sprintf(`
rule_files: %s
scrape_configs:
  - job_name: tokenpulse
    scrape_interval: 500ms
    scrape_timeout: 500ms
    static_configs: [{targets: [%q]}]
`, rules, target), "--enable-feature", features)
}

// Run starts a server with a configuration.
func Run(t *testing.T, program, config string, flags ...string) *Server {
	t.Helper()
	return serve(t, program, t.TempDir(), config, flags...)
}

// serve runs Prometheus with the data in a folder.
func serve(t *testing.T, program, data, config string, flags ...string) *Server {
	t.Helper()
	p := &Server{Address: collector.FreeAddress(t)}
	p.Process = collector.StartProcess(t, program, append([]string{
		"--config.file", collector.WriteFile(t, t.TempDir(), "prometheus.yml", config),
		"--storage.tsdb.path", data, "--web.listen-address", p.Address,
	}, flags...)...)
	p.WaitFor(t, "http://"+p.Address+"/-/ready")
	return p
}

// Server is a running Prometheus server.
type Server struct {
	*collector.Process
	Address string
	Native  bool // it stores native histograms
}

// WaitUntil repeats a query until it returns a result. Rules may need samples of half
// a minute, and a busy machine leaves evaluations out.
func (p *Server) WaitUntil(t *testing.T, query string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return len(p.ResultsAt(t, query, "")) > 0
	}, 4*collector.Patience, 100*time.Millisecond, query)
}

// Ask decodes an answer of Prometheus' API.
func (p *Server) Ask(t *testing.T, what string, parameters url.Values, answer any) {
	t.Helper()
	body := collector.Get(t, fmt.Sprintf("http://%s/api/v1/%s?%s", p.Address, what, parameters.Encode()), "application/json")
	require.NoError(t, json.Unmarshal(body, answer))
}

// Matrix returns the series that Prometheus answers with to a question whose answers have samples of several times.
func (p *Server) Matrix(t *testing.T, what string, parameters url.Values) []Series {
	t.Helper()
	var answer struct {
		Data struct{ Result []Series }
	}
	p.Ask(t, what, parameters, &answer)
	return answer.Data.Result
}

// ResultsAt returns the result of a query at a Unix time, or now if it is empty.
func (p *Server) ResultsAt(t *testing.T, query, at string) []Result {
	t.Helper()
	var answer struct {
		Data struct{ Result []Result }
	}
	p.Ask(t, "query", url.Values{"query": {query}, "time": {at}}, &answer)
	return answer.Data.Result
}

// Query returns the only number of a query's result.
func (p *Server) Query(t *testing.T, query string) float64 {
	t.Helper()
	results := p.ResultsAt(t, query, "")
	require.Len(t, results, 1, query)
	return Number(t, results[0].Value)
}

// BucketAround returns the bounds of the classic bucket that contains a value.
func (p *Server) BucketAround(t *testing.T, metric string, value float64) (low, high float64) {
	t.Helper()
	var answer struct {
		Data []string
	}
	p.Ask(t, "label/le/values", url.Values{"match[]": {metric + "_bucket"}}, &answer)
	var bounds []float64
	for _, text := range answer.Data {
		bounds = append(bounds, Parsed(t, text))
	}
	slices.Sort(bounds)
	above, _ := slices.BinarySearch(bounds, value)
	if above > 0 {
		low = bounds[above-1]
	}
	return low, bounds[above]
}

// RequireQuantile checks that a quantile is as accurate as the buckets that Prometheus stores.
func (p *Server) RequireQuantile(t *testing.T, metric string, want Bounds, got float64) {
	t.Helper()
	low, high := want.Low*(1-0.011), want.High*(1+0.011)
	if !p.Native {
		low, _ = p.BucketAround(t, metric, want.Low)
		_, high = p.BucketAround(t, metric, want.High)
	}
	require.GreaterOrEqual(t, got, low, metric)
	require.LessOrEqual(t, got, high, metric)
}

// ExemplarTraces returns the trace IDs of the exemplars that a query selects.
func (p *Server) ExemplarTraces(t *testing.T, query string) []string {
	t.Helper()
	var answer struct {
		Data []struct {
			Exemplars []struct {
				Labels map[string]string
			}
		}
	}
	p.Ask(t, "query_exemplars", url.Values{
		"query": {query},
		"start": {"1"}, "end": {strconv.FormatInt(time.Now().Add(24*time.Hour).Unix(), 10)},
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

// Result is one sample of a query's result: a time, and a number or a native histogram.
type Result struct {
	Metric           map[string]string
	Value, Histogram [2]any
}

// Series holds all samples of one series in Prometheus.
type Series struct {
	Metric     map[string]string
	Values     [][2]any
	Histograms [][2]any
}

// Series returns the only series that a selector finds.
func (p *Server) Series(t *testing.T, selector string) Series {
	t.Helper()
	var answer struct {
		Data struct{ Result []Series }
	}
	p.Ask(t, "query", url.Values{"query": {selector + "[1h]"}}, &answer)
	require.Len(t, answer.Data.Result, 1, selector)
	return answer.Data.Result[0]
}

// AllSeries returns the samples of all series of a metric.
func (p *Server) AllSeries(t *testing.T, metric string) []Series {
	t.Helper()
	return p.Matrix(t, "query", url.Values{"query": {metric + "[1h]"}})
}

// Bounds are the lowest and the highest value that a number can have.
type Bounds struct{ Low, High float64 }

// Exactly returns bounds without a distance.
func Exactly(value float64) Bounds { return Bounds{value, value} }

// Number returns the value of a sample.
func Number(t *testing.T, sample [2]any) float64 {
	t.Helper()
	return Parsed(t, sample[1].(string))
}

// Parsed returns a number that Prometheus wrote.
func Parsed(t *testing.T, text string) float64 {
	t.Helper()
	value, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return value
}
