// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// standardCalls are calls through a tap to a service that answers with recordings of vLLM, and one with cached tokens.
type standardCalls struct {
	tap   *collector.Tap
	calls []recorded.Answer // of one pass
	sent  int
}

// refused is the share of the calls of a model that the service refuses: of each pass, the first.
const refusedModel = "qwen3"

func startStandardCalls(t *testing.T, more ...string) *standardCalls {
	t.Helper()
	s := &standardCalls{}
	for _, answer := range recorded.Answers(t) {
		if strings.Contains(answer.File, "vllm") || answer.File == "openai_chat/derived_cr_only.sse" {
			s.calls = append(s.calls, answer)
		}
		if answer.RequestModel == refusedModel && strings.Contains(answer.File, "vllm") { // refused, and twice as it was
			s.calls = append(s.calls, answer, answer)
		}
	}
	upstream := llmservice.Start(t, func(w http.ResponseWriter, r *http.Request) {
		i, _ := strconv.Atoi(r.Header.Get("X-Answer"))
		answer := s.calls[i]
		if s.isRefused(i) {
			http.Error(w, `{"error":{"message":"xxxx","type":"server_overloaded"}}`, http.StatusServiceUnavailable)
			return
		}
		time.Sleep(time.Duration(10*i) * time.Millisecond)
		w.Header().Set("Content-Type", answer.ContentType)
		_, _ = w.Write(answer.Raw)
	})
	s.tap = collector.StartTap(t, upstream.URL, more...)
	return s
}

func (s *standardCalls) isRefused(i int) bool {
	return i == slices.IndexFunc(s.calls, func(a recorded.Answer) bool { return a.RequestModel == refusedModel })
}

// pass sends each call, and waits until the Collector has counted it.
func (s *standardCalls) pass(t *testing.T) {
	t.Helper()
	for i := range s.calls {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.tap.URL(s.calls[i].RequestPath), bytes.NewReader(s.calls[i].Request))
		require.NoError(t, err)
		request.Header.Set("X-Answer", strconv.Itoa(i))
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	s.sent += len(s.calls)
	require.Eventually(t, func() bool {
		counted := 0.
		for _, metric := range exposition.Scrape(t, s.tap.Collector)["tokenpulse_requests_total"].GetMetric() {
			counted += metric.GetCounter().GetValue()
		}
		return counted == float64(s.sent)
	}, collector.Patience, 10*time.Millisecond)
}

// recount returns what each query of docs/semconv.md has to answer for a number of passes, by model or "".
func (s *standardCalls) recount(passes float64) map[string]map[string]float64 {
	calls, refused, input, cached := map[string]float64{}, map[string]float64{}, 0., 0.
	for i, call := range s.calls {
		calls[call.RequestModel] += passes
		if s.isRefused(i) {
			refused[call.RequestModel] += passes
		} else if call.Usage != nil {
			input += passes * float64(*call.Usage.Input)
			if call.Usage.Cached != nil {
				cached += passes * float64(*call.Usage.Cached)
			}
		}
	}
	rate := map[string]float64{}
	for model, n := range refused {
		rate[model] = n / calls[model]
	}
	return map[string]map[string]float64{
		"calls by model": calls, "error rate": rate, "tokens spent": {"": input}, "cache hits": {"": cached / input},
	}
}

// standardQueries returns the queries below a heading of docs/semconv.md, by their comment, and those of the latest generation
// that follow from them as the page says.
func standardQueries(t *testing.T, heading string) map[string]string {
	t.Helper()
	_, section, found := strings.Cut(markdown.Read(t, "docs/semconv.md"), "\n### "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n### ")
	queries := map[string]string{}
	for _, block := range strings.Split(section, "```promql\n# ")[1:] {
		title, query, _ := strings.Cut(block, "\n")
		queries[title], _, _ = strings.Cut(query, "```")
		for _, of := range [][2]string{{"client.operation", "client.inference"}, {"client_operation", "client_inference"}} {
			if latest := strings.ReplaceAll(queries[title], of[0], of[1]); latest != queries[title] {
				queries[strings.ReplaceAll(title, "v1.41", "latest")] = latest
			}
		}
	}
	require.NotEmpty(t, queries)
	return queries
}

// require checks what a query answers at a time. passes were counted.
func (s *standardCalls) require(t *testing.T, p *promserver.Server, title, query, at string, passes float64) {
	t.Helper()
	got := map[string]float64{}
	for _, result := range p.ResultsAt(t, query, at) {
		model := cmp.Or(result.Metric["gen_ai_request_model"], result.Metric[names.GenAIRequestModel])
		got[model] = promserver.Number(t, result.Value)
	}
	what, _, _ := strings.Cut(title, ",")
	if what != "p95 by model" {
		require.InDeltaMapValues(t, s.recount(passes)[what], got, 1e-6, title)
		return
	}
	seconds := map[string][]float64{}
	for _, span := range otlpfile.ReadSpans(t, s.tap.Derived) {
		model, _ := span.Attributes().Get(names.GenAIRequestModel)
		seconds[model.Str()] = append(seconds[model.Str()], float64(span.EndTimestamp()-span.StartTimestamp())/1e9)
	}
	require.Len(t, got, len(seconds))
	bounds := conventions.Table[0].Bounds
	for model, all := range seconds {
		slices.Sort(all)
		low, _ := slices.BinarySearch(bounds, reference.NearestRank(all, 0.9)) // the first pass may not count
		high, _ := slices.BinarySearch(bounds, reference.NearestRank(all, 0.98))
		require.LessOrEqual(t, got[model], bounds[high], "%s, %s", title, model)
		if low > 0 {
			require.GreaterOrEqual(t, got[model], bounds[low-1], "%s, %s", title, model)
		}
	}
}

const standardOfExporter = `exporters: {token_sli: {conventions: {gen_ai: [v1.41, latest]}}}`

// recordStandard records the scrapes of many passes, and returns the time of the last one.
func recordStandard(t *testing.T) (*standardCalls, *recording) {
	t.Helper()
	const step, passes = 10 * time.Second, 31
	s := startStandardCalls(t, standardOfExporter)
	queries := []string{"tokenpulse_requests_total"}
	for _, query := range standardQueries(t, "Underscores") {
		queries = append(queries, query)
	}
	recorded, begin := newRecording(queries...), time.Now().Add(-time.Hour).Truncate(time.Second)
	for pass := range passes {
		s.pass(t)
		recorded.add(exposition.Scrape(t, s.tap.Collector), begin.Add(time.Duration(pass)*step))
	}
	return s, recorded
}

// requireStandardAnswers asks the queries with underscores. The first of 31 passes is their baseline.
func requireStandardAnswers(t *testing.T, setups map[string]prometheusSetup) {
	t.Helper()
	s, recorded := recordStandard(t)
	for name, setup := range setups {
		t.Run(name, func(t *testing.T) {
			p := recorded.replay(t, setup)
			for title, query := range standardQueries(t, "Underscores") {
				t.Run(title, func(t *testing.T) {
					at := strconv.FormatInt(recorded.last.Unix(), 10)
					ofHistogram := !strings.Contains(query, "_total")
					if setup.native && ofHistogram && !strings.Contains(setup.scrapeSettings, "classic") {
						require.Empty(t, p.ResultsAt(t, query, at), "the page says so")
						return
					}
					s.require(t, p, title, query, at, 30)
				})
			}
		})
	}
}

// The queries of the page that read /metrics count recorded calls as a recount does.
func TestStandardQueries_OfScrapesEqualARecount(t *testing.T) {
	t.Parallel()
	requireStandardAnswers(t, installedSetups(t))
}

// Client, gateway and engine report a call, each with a span of its own in one trace.
func TestStandardMetrics_CallOfThreeVantages(t *testing.T) {
	t.Parallel()
	var events strings.Builder
	for i, vantage := range []string{"client", "gateway", "engine"} {
		event := tokenevents.EventsOf(&events, vantage, time.Now())
		event("start", 0, fmt.Sprintf(`,"trace_id":"0af7651916cd43dd8448eb211c80319c","vantage":%q`, vantage))
		event("chunk", 10*time.Millisecond, "")
		event("end", time.Duration(100-i)*time.Millisecond, "")
	}
	for name, test := range map[string]struct {
		vantages       string
		client, server uint64
		doubts         int
	}{
		"all of them count":            {"", 2, 1, 1},
		"one vantage for each name":    {"vantages: [client, engine], ", 1, 1, 0},
		"a gateway in place of client": {"vantages: [gateway, engine], ", 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config", "yaml:exporters: {token_sli: {conventions: {"+test.vantages+"gen_ai: v1.41}}}")
			c.Post(t, "application/x-ndjson", strings.NewReader(events.String()))
			scraped := exposition.Scrape(t, c)
			for metric, want := range map[string]uint64{"client_operation": test.client, "server_request": test.server} {
				calls := scraped["gen_ai_"+metric+"_duration_seconds"].GetMetric()
				require.Len(t, calls, 1, metric)
				require.Equal(t, want, calls[0].GetHistogram().GetSampleCount(), metric)
			}
			var now struct{ Doubts []struct{ Message string } }
			require.NoError(t, json.Unmarshal(collector.Get(t, "http://"+c.Metrics+"/api/v1/now", "application/json"), &now))
			require.Len(t, now.Doubts, test.doubts)
			for _, doubt := range now.Doubts {
				require.Contains(t, doubt.Message, "conventions::vantages")
			}
		})
	}
}
