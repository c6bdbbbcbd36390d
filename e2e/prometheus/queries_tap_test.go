// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// longModel has 80 characters.
const longModel = "neuralmagic/Meta-Llama-3.1-405B-Instruct-quantized.w8a8-long-context-fp8-kv-0001"

const (
	// headersOfQueries are those that the page names for token_tap.
	headersOfQueries = "attributes_from_headers: {x-tenant-id: tenant.id, x-service-version: service.version}"

	healthyGap, slowGap = 2 * time.Millisecond, 120 * time.Millisecond
	// threshold is that of chat-tpot in examples/tap.yaml.
	threshold, stallThreshold = 100 * time.Millisecond, 100 * time.Millisecond

	// The first requests of an engine take longer. tapIdle is short enough to wait for, and long enough to be busy in
	// each step on a machine that is.
	tapCold, tapLoading, tapIdle = 10, 60 * time.Millisecond, 5 * time.Second
)

// moreForTap extends examples/tap.yaml: a route per engine.
const moreForTap = `
receivers:
  token_tap:
    %s
    routes: [%s]
processors:
  token_latency:
    stall_threshold: %s
    cold_start: {requests: %d, duration: 0, idle: %s}
`

// tapRequest is a request through the tap, with the times that its client and its engine took.
// What the tap sees of a chunk is between these.
type tapRequest struct {
	number, step, engine   int
	model, tenant, version string
	gap                    time.Duration
	loading                time.Duration // before the answer
	whole, refused         bool          // an answer in one piece, or status 503

	asked, ended    time.Time // client
	begun, finished time.Time // engine
	sent, received  []time.Time
}

func (r *tapRequest) traceID() string { return fmt.Sprintf("%032x", r.number+1) }
func (r *tapRequest) slow() bool      { return r.gap == slowGap }

func between(low, high time.Duration) promserver.Bounds {
	return promserver.Bounds{Low: low.Seconds(), High: high.Seconds()}
}

func (r *tapRequest) prefill() promserver.Bounds {
	return between(r.sent[0].Sub(r.begun), r.received[0].Sub(r.asked))
}

func (r *tapRequest) decode() promserver.Bounds {
	last := len(r.sent) - 1
	return between(r.sent[last].Sub(r.received[0]), r.received[last].Sub(r.sent[0]))
}

func (r *tapRequest) perToken() promserver.Bounds {
	decode, gaps := r.decode(), float64(len(r.sent)-1)
	return promserver.Bounds{Low: decode.Low / gaps, High: decode.High / gaps}
}

// stalls is the sum of the gaps that exceed stallThreshold.
func (r *tapRequest) stalls() (sum promserver.Bounds) {
	for i := 1; i < len(r.sent); i++ {
		if low := r.sent[i].Sub(r.received[i-1]); low > stallThreshold {
			sum.Low += low.Seconds()
		}
		if high := r.received[i].Sub(r.sent[i-1]); high > stallThreshold {
			sum.High += high.Seconds()
		}
	}
	return sum
}

func (r *tapRequest) duration() promserver.Bounds {
	return between(r.finished.Sub(r.begun), r.ended.Sub(r.asked))
}

// answer writes the answer of an engine: three chunks of one token.
func (r *tapRequest) answer(w http.ResponseWriter) {
	r.begun = time.Now()
	time.Sleep(healthyGap + r.loading)
	switch {
	case r.refused:
		w.WriteHeader(http.StatusServiceUnavailable)
		r.finished = time.Now()
		_, _ = io.WriteString(w, `{"error":{"message":"try later","type":"overloaded"}}`)
		return
	case r.whole:
		r.finished = time.Now()
		_, _ = io.WriteString(w, `{"id":"chatcmpl-1","object":"chat.completion","model":"served","choices":[{"index":0,"message":{"role":"assistant","content":"word"},"finish_reason":"stop"}]}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range 3 {
		if i > 0 {
			time.Sleep(r.gap)
		}
		r.sent = append(r.sent, time.Now())
		_, _ = io.WriteString(w, llmservice.ChatChunk)
		_ = http.NewResponseController(w).Flush()
	}
	r.finished = time.Now()
	_, _ = io.WriteString(w, llmservice.ChatEnd)
}

// ask sends the request, and reads the answer.
func (r *tapRequest) ask(tap string) error {
	body := fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":"go"}]}`, r.model, !r.whole)
	request, err := http.NewRequest(http.MethodPost, fmt.Sprintf("http://%s/engine-%d%s", tap, r.engine, llmservice.ChatPath), strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "X-Number": strconv.Itoa(r.number), "X-Tenant-Id": r.tenant, "X-Service-Version": r.version,
		"Traceparent": fmt.Sprintf("00-%s-%016x-01", r.traceID(), r.number+1),
	} {
		request.Header.Set(name, value)
	}
	r.asked = time.Now()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"word"`) {
			r.received = append(r.received, time.Now())
		}
	}
	r.ended = time.Now()
	return lines.Err()
}

// tapRequestsOf returns the requests of a step: nine engines serve longModel, and engine 9 has the
// least traffic. It is slow from the deploy on. Engine 10 serves a model alone.
func tapRequestsOf(step int) (all []*tapRequest) {
	at := time.Duration(step) * scrapeStep
	for engine := 1; engine <= 9; engine++ {
		r := tapRequest{engine: engine, model: longModel, tenant: "globex", version: "1.4", gap: healthyGap}
		times := 2
		if engine == 9 {
			r.tenant, times = "acme", 1
			if at > deployAt {
				r.gap, r.version = slowGap, "1.5"
			}
		}
		if at > busyFrom && at <= busyUntil {
			times *= 2
		}
		for range times {
			again := r
			all = append(all, &again)
		}
	}
	for i := range 5 {
		all = append(all, &tapRequest{engine: 10, model: "llama-3-8b", tenant: "initech", version: "1.4", gap: healthyGap, whole: i == 0, refused: i == 1})
	}
	return all
}

// recordTap records requests through the tap. What they take is real, the time between them is not.
func recordTap(t *testing.T, recorded *recording) map[string]answerCheck {
	t.Helper()
	require.Len(t, longModel, 80)
	require.Contains(t, markdown.Read(t, "docs/queries.md"), headersOfQueries)
	var known sync.Map // requests by number
	var routes, ports []string
	for engine := 1; engine <= 10; engine++ {
		server := llmservice.Start(t, func(w http.ResponseWriter, request *http.Request) {
			r, ok := known.Load(request.Header.Get("X-Number"))
			if !ok {
				llmservice.WriteChunks(w, 1)
				<-request.Context().Done() // the stream hangs
				return
			}
			r.(*tapRequest).answer(w)
		})
		at, err := url.Parse(server.URL)
		require.NoError(t, err)
		ports = append(ports, at.Port())
		routes = append(routes, fmt.Sprintf(`{prefix: /engine-%d, upstream: {endpoint: %q}}`, engine, server.URL))
	}
	tap, folder := collector.FreeAddress(t), t.TempDir()
	collector.Setenv(t, "TAP_ENDPOINT", tap)
	c := collector.Start(t, collector.Example(t, "tap.yaml"), "--config", collector.WriteFile(t, folder, "labels.yaml", labelsOfQueries(t)),
		"--config", collector.WriteFile(t, folder, "tap.yaml", fmt.Sprintf(moreForTap, headersOfQueries, strings.Join(routes, ", "), stallThreshold, tapCold, tapIdle)))

	// The Collector knows which engines are cold only after this time.
	began := time.Now()
	time.Sleep(tapIdle)

	begin := beginOfPast()
	var all []*tapRequest
	asked := map[int]int{} // requests by engine
	steps := int(incidentLength / scrapeStep)
	for step := 1; step <= steps; step++ {
		var wait sync.WaitGroup
		for _, r := range tapRequestsOf(step) {
			r.step, r.number = step, len(all)
			if asked[r.engine]++; asked[r.engine] <= tapCold {
				r.loading = tapLoading
			}
			all = append(all, r)
			known.Store(strconv.Itoa(r.number), r)
			wait.Go(func() {
				if err := r.ask(tap); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		recorded.add(exposition.WaitForRequests(t, c, len(all)), begin.Add(time.Duration(step)*scrapeStep))
	}
	recorded.openStreams(hangThroughTap(t, c, tap), begin)
	return tapChecks(begin, all, coldOnTap(all, began), ports)
}

// coldOnTap recounts which requests are cold, by their numbers.
func coldOnTap(all []*tapRequest, began time.Time) map[int]bool {
	cold, byEngine := map[int]bool{}, map[int][]*tapRequest{}
	for _, r := range all {
		byEngine[r.engine] = append(byEngine[r.engine], r)
	}
	for _, served := range byEngine {
		slices.SortFunc(served, func(a, b *tapRequest) int { return a.ended.Compare(b.ended) })
		var open []reference.Interval
		for _, r := range served {
			open = append(open, reference.Interval{Start: r.asked, End: r.ended})
		}
		for i, is := range reference.ColdStarts(open, began, tapCold, 0, tapIdle) {
			cold[served[i].number] = is
		}
	}
	return cold
}

// hangThroughTap opens streams to two engines that hang, and returns the scrape that shows it.
func hangThroughTap(t *testing.T, c *collector.Collector, tap string) map[string]*dto.MetricFamily {
	t.Helper()
	for engine := 1; engine <= 2; engine++ {
		answer, err := http.Post(fmt.Sprintf("http://%s/engine-%d%s", tap, engine, llmservice.ChatPath), "application/json",
			strings.NewReader(strings.ReplaceAll(llmservice.ChatAsked, "asked", longModel)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
	}
	return waitForDecoding(t, c, "gateway", 2, 0)
}

// tapChecks returns what the page's queries answer about requests through the tap.
func tapChecks(begin time.Time, all []*tapRequest, cold map[int]bool, ports []string) map[string]answerCheck {
	const long, small, service = "gen_ai_request_model=" + longModel, "gen_ai_request_model=llama-3-8b", " service_name=unknown_service"
	const perStep, slowPerStep = 8*2 + 1., 1. // requests to longModel
	const perToken = "tokenpulse_time_per_output_token_seconds"
	end, hourAgo := int(incidentLength/scrapeStep), int((incidentLength-time.Hour)/scrapeStep)

	// during returns the requests to a model in a window that ends after a step, without those
	// that have no tokens. A window of 5 minutes has 5 scrapes, and what the first counted is before it.
	const window = 4
	during := func(model string, end int) (some []*tapRequest) {
		for _, r := range all {
			if model == "gen_ai_request_model="+r.model && r.step > end-window && r.step <= end && len(r.sent) > 0 {
				some = append(some, r)
			}
		}
		return some
	}
	inFlightAt := func(end int) promserver.Bounds {
		now := during(long, end)
		each, n := meanOf(now, (*tapRequest).duration), float64(len(now))/(window*scrapeStep).Seconds()
		return promserver.Bounds{Low: each.Low * n, High: each.High * n}
	}

	// counted returns the requests to longModel after a step, until another, that are cold or not. Those of the first
	// scrape of their counter have no rate.
	counted := func(isCold bool, after, until int) (some []*tapRequest) {
		first := map[int]int{} // steps by engine
		for _, r := range all {
			if r.model != longModel || cold[r.number] != isCold {
				continue
			}
			if first[r.engine] == 0 {
				first[r.engine] = r.step
			}
			if r.step > max(after, first[r.engine]) && r.step <= until {
				some = append(some, r)
			}
		}
		return some
	}

	// ask asks about longModel.
	now := askedAt(begin)
	about := func(query string) string { return strings.ReplaceAll(query, "llama-3-70b", longModel) }
	ask := func(t *testing.T, p *promserver.Server, query string) answers {
		t.Helper()
		return answersAt(t, p, about(query), now).of("gateway")
	}
	return map[string]answerCheck{
		"Which streams hang": func(t *testing.T, p *promserver.Server, query string) {
			want := map[string]float64{}
			for _, port := range ports[:2] { // of engines 1 and 2
				want[long+" server_address=127.0.0.1 server_port="+port] = 1
			}
			ask(t, p, query).require(t, want)
		},
		"Which model": func(t *testing.T, p *promserver.Server, query string) {
			ask(t, p, query).require(t, map[string]float64{
				long + " slo=chat-tpot": slowPerStep / perStep, long + " slo=all": slowPerStep / perStep, long + " slo=chat-ttft": 0,
				small + " slo=chat-tpot": 0.25, small + " slo=all": 0.25, small + " slo=chat-ttft": 0.25,
			})
		},
		"How much error budget is left": func(t *testing.T, p *promserver.Server, query string) {
			slow, judged := 0., 0.
			for _, r := range all {
				if r.model == longModel {
					judged++
				}
				if r.slow() {
					slow++
				}
			}
			// The objectives are 95% and 99%.
			ask(t, p, query).require(t, map[string]float64{
				long + " slo=chat-tpot": 1 - slow/judged/0.05, small + " slo=chat-tpot": 1 - 0.25/0.05,
				long + " slo=chat-ttft": 1, small + " slo=chat-ttft": 1 - 0.25/0.01,
			})
		},
		"How slow": func(t *testing.T, p *promserver.Server, query string) {
			got := ask(t, p, query)
			require.Len(t, got, 2)
			for _, model := range []string{long, small} {
				var low, high []float64
				for _, r := range during(model, end) {
					low, high = append(low, r.perToken().Low), append(high, r.perToken().High)
				}
				slices.Sort(low)
				slices.Sort(high)
				p.RequireQuantile(t, perToken, promserver.Bounds{Low: reference.NearestRank(low, 0.95), High: reference.NearestRank(high, 0.95)}, got[model])
			}
		},
		"How slow by prompt length and cache hit": func(t *testing.T, p *promserver.Server, query string) {
			// The engines report no usage.
			got := ask(t, p, query)
			require.Len(t, got, 1)
			requireFirstToken(t, p, during(long, end), got["cached_share=unknown prompt_tokens=unknown"])
		},
		"How slow is a cold start": func(t *testing.T, p *promserver.Server, query string) {
			const until = 10 // engine 9 has one request in each step
			got := answersAt(t, p, about(query), begin.Add(until*scrapeStep+time.Second)).of("gateway")
			require.Len(t, got, 1)
			requireFirstToken(t, p, counted(true, 0, until), got[""])
		},
		"Without cold starts": func(t *testing.T, p *promserver.Server, query string) {
			const until = 8 // a quarter of the requests of that window are cold
			got := answersAt(t, p, about(query), begin.Add(until*scrapeStep+time.Second)).of("gateway")
			require.Len(t, got, 1)
			requireFirstToken(t, p, counted(false, until-window, until), got[""])
		},
		"Slow or failing": func(t *testing.T, p *promserver.Server, query string) {
			ask(t, p, query).require(t, map[string]float64{long + " outcome=success": 1, small + " outcome=success": 0.8, small + " outcome=error": 0.2})
		},
		"Which errors": func(t *testing.T, p *promserver.Server, query string) {
			ask(t, p, query).require(t, map[string]float64{"cause=server error_type=overloaded " + small: 0.2})
		},
		"Since when": func(t *testing.T, p *promserver.Server, query string) {
			require.Empty(t, ask(t, p, query), "one in 17 requests is bad")
			since := time.Unix(int64(ask(t, p, strings.ReplaceAll(query, "0.1 *", "0.02 *"))[""]), 0).Sub(begin.Add(deployAt))
			require.Greater(t, since, scrapeStep)
			require.Less(t, since, 5*time.Minute)
		},
		"Which tenant": func(t *testing.T, p *promserver.Server, query string) {
			ask(t, p, query).require(t, map[string]float64{"tenant_id=acme": 1, "tenant_id=globex": 0})
		},
		"How many tenants": func(t *testing.T, p *promserver.Server, query string) {
			ask(t, p, query).require(t, map[string]float64{"": 1})
		},
		"Queue, prefill, decode or network": func(t *testing.T, p *promserver.Server, query string) {
			growth := func(of func(*tapRequest) promserver.Bounds) promserver.Bounds {
				before, after := meanOf(during(long, hourAgo), of), meanOf(during(long, end), of)
				return promserver.Bounds{Low: after.Low - before.High, High: after.High - before.Low}
			}
			ask(t, p, query).requireBetween(t, map[string]promserver.Bounds{"phase=prefill": growth((*tapRequest).prefill), "phase=decode": growth((*tapRequest).decode)})
		},
		"Slow tokens or stalls": func(t *testing.T, p *promserver.Server, query string) {
			decode := meanOf(during(long, end), (*tapRequest).decode)
			stalls := meanOf(during(long, end), (*tapRequest).stalls)
			ask(t, p, query).requireBetween(t, map[string]promserver.Bounds{long: {Low: stalls.Low / decode.High, High: stalls.High / decode.Low}, small: {}})
		},
		"Which engine": func(t *testing.T, p *promserver.Server, query string) {
			want := map[string]promserver.Bounds{}
			for engine := 1; engine <= 9; engine++ {
				served := slices.DeleteFunc(during(long, end), func(r *tapRequest) bool { return r.engine != engine })
				want["server_address=127.0.0.1 server_port="+ports[engine-1]] = meanOf(served, (*tapRequest).perToken)
			}
			ask(t, p, query).requireBetween(t, want)
			first := p.ResultsAt(t, about(query), strconv.FormatInt(now.Unix(), 10))[0]
			require.Equal(t, ports[9-1], first.Metric["server_port"], "the slow engine is the first, with the least traffic")
		},
		"Which version": func(t *testing.T, p *promserver.Server, query string) {
			ask(t, p, query).require(t, map[string]float64{"service_version=1.4": 0, "service_version=1.5": 1})
		},
		"How many requests are in flight": func(t *testing.T, p *promserver.Server, query string) {
			got := ask(t, p, query)
			require.Len(t, got, 2)
			delete(got, small)
			got.requireBetween(t, map[string]promserver.Bounds{long: inFlightAt(end)})
		},
		"Load or a bad deploy": func(t *testing.T, p *promserver.Server, query string) {
			ask(t, p, query).require(t, map[string]float64{long: 1, small: 1})
		},
		"How much headroom": func(t *testing.T, p *promserver.Server, query string) {
			// Each evaluation of the window until the deploy, on whole minutes.
			var most promserver.Bounds
			for minute := begin.Add(window * scrapeStep).Truncate(time.Minute); minute.Before(begin.Add(deployAt)); minute = minute.Add(time.Minute) {
				then := inFlightAt(int(minute.Sub(begin) / scrapeStep))
				most = promserver.Bounds{Low: max(most.Low, then.Low), High: max(most.High, then.High)}
			}
			present := inFlightAt(end)
			ask(t, p, query).requireBetween(t, map[string]promserver.Bounds{long: {Low: most.Low - present.High, High: most.High - present.Low}})
		},
		"What it costs": func(t *testing.T, p *promserver.Server, query string) {
			// The engines report no usage: each chunk of a stream counts as a token of output.
			microCost(t, p, query, now).of("gateway").require(t, map[string]float64{long: 60 * perStep * 3 * 0.90, small: 60 * 3 * 3 * 0.08})
		},
		"What a million tokens costs on your own GPUs": func(t *testing.T, p *promserver.Server, query string) {
			ask(t, p, query).require(t, map[string]float64{long: 16 * 1e6 / (60 * perStep * 3), small: 2 * 1e6 / (60 * 3 * 3)})
		},
		"What a million good tokens costs": func(t *testing.T, p *promserver.Server, query string) {
			ask(t, p, query).require(t, map[string]float64{long: 16 * 1e6 / (60 * (perStep - slowPerStep) * 3), small: 2 * 1e6 / (60 * 3 * 3 * 0.75)})
		},
		"Which requests cannot be judged": func(t *testing.T, p *promserver.Server, query string) {
			ask(t, p, query).require(t, map[string]float64{long + service: 1, small + service: 0.8})
		},
		"Why they cannot be judged": func(t *testing.T, p *promserver.Server, query string) {
			want := map[string]float64{}
			for _, indicator := range []string{"time_to_first_token", "time_per_output_token"} {
				for _, reason := range []string{"not_streamed", "no_token"} {
					want[small+" indicator="+indicator+" reason="+reason+service] = 0.2
				}
			}
			ask(t, p, query).require(t, want)
		},
		"Which requests": func(t *testing.T, p *promserver.Server, query string) {
			slow, latest := map[string]bool{}, "" // those that the tap may have seen as slow, on a machine that was busy
			for _, r := range all {
				if r.slow() {
					latest = r.traceID()
				}
				slow[r.traceID()] = len(r.sent) > 0 && r.perToken().High > threshold.Seconds()
			}
			traces := p.ExemplarTraces(t, about(query))
			require.Contains(t, traces, latest)
			for _, trace := range traces {
				require.True(t, slow[trace], "trace %s is not of a slow request", trace)
			}
		},
	}
}

// requireFirstToken fails unless an answer is the 95th percentile of the time to first token of requests.
func requireFirstToken(t *testing.T, p *promserver.Server, requests []*tapRequest, got float64) {
	t.Helper()
	var low, high []float64
	for _, r := range requests {
		low, high = append(low, r.prefill().Low), append(high, r.prefill().High)
	}
	slices.Sort(low)
	slices.Sort(high)
	p.RequireQuantile(t, "tokenpulse_time_to_first_token_seconds", promserver.Bounds{Low: reference.NearestRank(low, 0.95), High: reference.NearestRank(high, 0.95)}, got)
}

// meanOf returns the bounds of the mean of a number over requests.
func meanOf(requests []*tapRequest, of func(*tapRequest) promserver.Bounds) (all promserver.Bounds) {
	for _, r := range requests {
		one, n := of(r), float64(len(requests))
		all = promserver.Bounds{Low: all.Low + one.Low/n, High: all.High + one.High/n}
	}
	return all
}

// requireBetween compares answers with bounds. 2 ms tolerate what a client or an engine cannot
// see, and 3% what Prometheus extrapolates.
func (a answers) requireBetween(t *testing.T, want map[string]promserver.Bounds) {
	t.Helper()
	require.Len(t, a, len(want), "%v", a)
	for labels, b := range want {
		require.Contains(t, a, labels)
		slack := 0.002 + 0.03*max(math.Abs(b.Low), math.Abs(b.High))
		require.GreaterOrEqual(t, a[labels], b.Low-slack, labels)
		require.LessOrEqual(t, a[labels], b.High+slack, labels)
	}
}
