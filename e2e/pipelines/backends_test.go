// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// backend is a section of docs/backends.md.
type backend struct {
	name string
	// recipes are the files of each command.
	recipes [][]string
	queries []string
	// sent is that column of the rows of the table that link to the section.
	sent []string
}

var (
	backendCommand = regexp.MustCompile(`(?m)^otelcol-\w+ --config (.*)$`)
	backendQuery   = regexp.MustCompile("(?s)```(?:promql|text|sql|json)\n(.*?)```")
)

// backendsPage reads docs/backends.md.
func backendsPage(t *testing.T) (all []backend) {
	t.Helper()
	page := markdown.Read(t, "docs/backends.md")
	for section := range strings.SplitSeq(page, "\n## ") {
		b := backend{}
		b.name, _, _ = strings.Cut(section, "\n")
		for _, command := range backendCommand.FindAllStringSubmatch(section, -1) {
			b.recipes = append(b.recipes, strings.Split(command[1], " --config "))
		}
		if len(b.recipes) == 0 {
			continue
		}
		for _, query := range backendQuery.FindAllStringSubmatch(section, -1) {
			b.queries = append(b.queries, query[1])
		}
		anchor := "(#" + strings.ReplaceAll(strings.ToLower(b.name), " ", "-") + ")"
		for _, row := range markdown.TableRows(page) {
			if strings.Contains(row[0], anchor) {
				b.sent = append(b.sent, strings.TrimSpace(row[4]))
			}
		}
		require.Len(t, b.queries, 3, "%s: TTFT, TPOT and burn rate", b.name)
		require.Len(t, b.sent, len(b.recipes), "%s: a row for each command", b.name)
		all = append(all, b)
	}
	require.Len(t, all, 9)
	return all
}

// backendConfigs returns the arguments for the files of a recipe.
func backendConfigs(t *testing.T, recipe []string) (arguments []string) {
	t.Helper()
	for _, file := range recipe {
		arguments = append(arguments, "--config", collector.Example(t, "backends/"+file))
	}
	return arguments
}

func TestBackendsPage_UsesEveryFile(t *testing.T) {
	t.Parallel()
	used := map[string]bool{"builder-config.yaml": true}
	for _, b := range backendsPage(t) {
		for _, recipe := range b.recipes {
			require.Equal(t, "common.yaml", recipe[0])
			for _, file := range recipe {
				used[file] = true
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(testenv.Root(t), "examples", "backends", "*"))
	require.NoError(t, err)
	for _, file := range files {
		require.True(t, used[filepath.Base(file)], file)
	}
}

// otlpServer keeps what it receives over OTLP/HTTP.
type otlpServer struct {
	*httptest.Server
	mu sync.Mutex
	// mu guards everything declared below.
	metrics map[string]pmetric.Metric
	spans   []ptrace.Span
	unknown []string
	// largest is the length of the longest body, uncompressed; counted is the sum of tokenpulse.requests.
	largest, counted int
}

func startOTLPServer(t *testing.T) *otlpServer {
	t.Helper()
	s := &otlpServer{metrics: map[string]pmetric.Metric{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *otlpServer) serve(_ http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body []byte
	uncompressed, err := gzip.NewReader(request.Body)
	if err == nil {
		body, err = io.ReadAll(uncompressed)
	}
	s.largest = max(s.largest, len(body))
	switch metrics, traces := pmetricotlp.NewExportRequest(), ptraceotlp.NewExportRequest(); {
	case err == nil && request.URL.Path == "/v1/metrics" && metrics.UnmarshalProto(body) == nil:
		for _, resource := range metrics.Metrics().ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					s.metrics[m.Name()] = m
					if m.Name() == "tokenpulse.requests" {
						for _, point := range m.Sum().DataPoints().All() {
							s.counted += int(point.IntValue())
						}
					}
				}
			}
		}
	case err == nil && request.URL.Path == "/v1/traces" && traces.UnmarshalProto(body) == nil:
		for _, resource := range traces.Traces().ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					s.spans = append(s.spans, span)
				}
			}
		}
	default:
		s.unknown = append(s.unknown, request.URL.Path)
	}
}

// sent describes metrics as the table of docs/backends.md does.
func sent(t *testing.T, metrics map[string]pmetric.Metric) string {
	t.Helper()
	found := map[string]bool{}
	for _, m := range metrics {
		switch m.Type() {
		case pmetric.MetricTypeSum:
			found[strings.ToLower(m.Sum().AggregationTemporality().String())] = true
		case pmetric.MetricTypeHistogram:
			found[strings.ToLower(m.Histogram().AggregationTemporality().String())+", explicit"] = true
			for _, point := range m.Histogram().DataPoints().All() {
				require.Less(t, point.BucketCounts().Len(), 31, "%s: Splunk drops it", m.Name())
			}
		case pmetric.MetricTypeExponentialHistogram:
			found[strings.ToLower(m.ExponentialHistogram().AggregationTemporality().String())+", exponential"] = true
		}
	}
	require.Len(t, found, 2, "%v: one kind of sums, and one of histograms", found)
	for kind := range found {
		if temporality, _, histograms := strings.Cut(kind, ", "); histograms {
			require.True(t, found[temporality])
			return kind
		}
	}
	return ""
}

// startRecipe starts a Collector with the files of a recipe, which sends to a server in place of the vendor's.
func startRecipe(t *testing.T, recipe []string, url string) *collector.Collector {
	t.Helper()
	for _, variable := range []string{"GRAFANA_CLOUD_INSTANCE_ID", "GRAFANA_CLOUD_TOKEN"} {
		collector.Setenv(t, variable, "123")
	}
	arguments := backendConfigs(t, recipe)
	return collector.StartPushing(t, arguments[1], append(arguments[2:],
		"--set=exporters.otlp_http.metrics_endpoint="+url+"/v1/metrics", "--set=exporters.otlp_http.traces_endpoint="+url+"/v1/traces")...)
}

// A flush of 2,000 series is several times as large as what New Relic takes at once.
func TestBackends_SplitLargeFlushes(t *testing.T) {
	for file, limit := range map[string]int{"new-relic.yaml": 1_000_000, "datadog.yaml": 5_000_000, "elastic.yaml": math.MaxInt} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			const streams = 2000
			server := startOTLPServer(t)
			c := startRecipe(t, []string{"common.yaml", file}, server.URL)
			var lines strings.Builder
			begin := time.Now().Add(-time.Second)
			for i := range streams {
				write := tokenevents.EventsOf(&lines, strconv.Itoa(i), begin)
				write("start", 0, fmt.Sprintf(`,"attributes":{"gen_ai.request.model":"model-%d"}`, i))
				for token := range 20 {
					write("chunk", time.Duration(10+token*token)*time.Millisecond, "")
				}
				write("end", 500*time.Millisecond, "")
			}
			c.Post(t, "application/x-ndjson", strings.NewReader(lines.String()))
			c.Stop(t) // flushes

			server.mu.Lock()
			defer server.mu.Unlock()
			require.Empty(t, server.unknown)
			require.Less(t, server.largest, limit)
			require.Equal(t, streams, server.counted)
			if file == "elastic.yaml" {
				require.Greater(t, server.largest, 1_000_000, "the flush is too small for this test")
			}
		})
	}
}

var named = regexp.MustCompile(`\b(?:tokenpulse|gen_ai)[._][a-z0-9._]*[a-z0-9]`)

// Backends get the temporality and the histograms that the page says, with the metrics and
// attributes that its queries read, and spans for people.
func TestBackendsPage_SaysWhatIsSent(t *testing.T) {
	t.Parallel()
	for _, b := range backendsPage(t) {
		for i, recipe := range b.recipes {
			if slices.Contains(recipe, "clickhouse.yaml") {
				continue // make suite-backends has its exporter
			}
			t.Run(strings.Join(recipe[1:], "+"), func(t *testing.T) {
				t.Parallel()
				server := startOTLPServer(t)
				c := startRecipe(t, recipe, server.URL)
				collector.Replay(t, c, collector.DemoRecording(t))
				c.Stop(t) // flushes

				server.mu.Lock()
				defer server.mu.Unlock()
				require.Empty(t, server.unknown)
				require.Equal(t, b.sent[i], sent(t, server.metrics))
				require.Len(t, server.spans, collector.DemoRequests(t))
				for _, span := range server.spans {
					otlpfile.RequireReadable(t, span)
				}
				if i == 0 {
					requireNamesExist(t, b.queries, server.metrics)
				}
			})
		}
	}
}

// requireNamesExist checks names of metrics and attributes in queries.
func requireNamesExist(t *testing.T, queries []string, metrics map[string]pmetric.Metric) {
	t.Helper()
	known := map[string]bool{}
	add := func(name string) { known[name] = true; known[strings.ReplaceAll(name, ".", "_")] = true }
	attributes := func(of pcommon.Map) {
		for key := range of.All() {
			add(key)
		}
	}
	for name, m := range metrics {
		add(name)
		for _, suffix := range []string{"_seconds", "_total"} {
			add(name + suffix)
		}
		if m.Type() == pmetric.MetricTypeSum {
			for _, point := range m.Sum().DataPoints().All() {
				attributes(point.Attributes())
			}
		}
	}
	for _, query := range queries {
		names := named.FindAllString(query, -1)
		require.NotEmpty(t, names)
		for _, name := range names {
			require.True(t, known[name], "%s is not sent:\n%s", name, query)
		}
		for _, label := range regexp.MustCompile(`\b(?:slo|verdict|outcome|vantage)\b`).FindAllString(query, -1) {
			require.True(t, known[label], "no metric has %s:\n%s", label, query)
		}
	}
}
