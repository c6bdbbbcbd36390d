// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/canary"
	"github.com/tokenpulse/tokenpulse/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// comparing is an exporter without a server, so that its clock can be that of a synctest bubble.
type comparing struct {
	*tokenSLI
	measured *componenttest.Telemetry
}

const comparePath = "/api/v1/compare"

var versions = url.Values{"dimension": {"service.version"}, "baseline": {"v1"}, "candidate": {"v2"}, "slo": {"tpot"}}

func startComparing(t *testing.T, host component.Host, change func(*Config)) *comparing {
	t.Helper()
	e, telemetry := unstarted(t, func(c *Config) {
		c.Shared.Series.Dimensions = series.DimensionsOf("service.version", "service.instance.id")
		if change != nil {
			change(c)
		}
		require.NoError(t, c.Validate())
	})
	_, err := e.keeper.Start(t.Context(), host)
	require.NoError(t, err)
	require.NoError(t, e.compared.start(t.Context(), host, e.id, e.config, e.telemetry.Logger))
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	return &comparing{e, telemetry}
}

func (c *comparing) stop(t *testing.T) {
	t.Helper()
	if c.live != nil {
		c.live.page.Close()
	}
	c.selfMetrics.Shutdown()
	c.keeper.Shutdown(t.Context())
}

func (c *comparing) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.handler().ServeHTTP(w, r)
	return w
}

// verdict is an answer of the API.
type verdict struct {
	Verdict, Reason, Hint string
	Baseline, Candidate   struct {
		Requests, Bad, Replicas int
		interval
	}
	Ratio           interval
	PercentileRatio *interval `json:"percentile_ratio"`
	Since           float64
}

type interval struct{ Estimate, Lower, Upper *float64 }

func (i *interval) requireAround(t *testing.T, truth float64) {
	t.Helper()
	require.InEpsilon(t, truth, *i.Estimate, 0.05)
	require.Less(t, *i.Lower, truth)
	require.Greater(t, *i.Upper, truth)
}

// send sends a request about versions, with more parameters or other values of them.
func (c *comparing) send(t *testing.T, method string, more url.Values) *httptest.ResponseRecorder {
	t.Helper()
	values := maps.Clone(versions)
	maps.Copy(values, more)
	return c.serve(httptest.NewRequestWithContext(t.Context(), method, comparePath+"?"+values.Encode(), http.NoBody))
}

func (c *comparing) get(t *testing.T, more url.Values) *httptest.ResponseRecorder {
	t.Helper()
	return c.send(t, http.MethodGet, more)
}

func (c *comparing) post(t *testing.T, more url.Values) *httptest.ResponseRecorder {
	t.Helper()
	return c.send(t, http.MethodPost, more)
}

func (c *comparing) ask(t *testing.T, more url.Values) verdict {
	t.Helper()
	return verdictIn(t, c.get(t, more), http.StatusOK)
}

func (c *comparing) begin(t *testing.T, more url.Values) verdict {
	t.Helper()
	return verdictIn(t, c.post(t, more), http.StatusCreated)
}

func verdictIn(t *testing.T, w *httptest.ResponseRecorder, status int) (v verdict) {
	t.Helper()
	require.Equal(t, status, w.Code, w.Body)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &v))
	return v
}

// traffic sends requests of both versions from five replicas each, 20% of v1 and a share of v2 bad.
type traffic struct {
	random *rand.Rand
	bad    map[string]float64
}

func newTraffic(candidate float64) *traffic {
	return &traffic{rand.New(rand.NewPCG(1, 2)), map[string]float64{"v1": 0.2, "v2": candidate}} //nolint:gosec // repeatable
}

// second returns the requests of both versions that started in the last second.
func (tr *traffic) second(now time.Time) map[string]ptrace.Traces {
	all := map[string]ptrace.Traces{}
	for _, version := range []string{"v1", "v2"} {
		all[version] = ptrace.NewTraces()
		for range 4 {
			verdict := map[string]any{"tokenpulse.slo.met": []any{"tpot"}}
			if tr.random.Float64() < tr.bad[version] {
				verdict = map[string]any{"tokenpulse.slo.breached": []any{"tpot"}}
			}
			one := requestOf(version, fmt.Sprint(version, tr.random.IntN(5)), now.Add(-time.Second), verdict)
			one.ResourceSpans().MoveAndAppendTo(all[version].ResourceSpans())
		}
	}
	return all
}

// requestOf returns a request that a replica of a version served within a second.
func requestOf(version, replica string, start time.Time, attributes map[string]any) ptrace.Traces {
	one := keepertest.Batch(keepertest.Request(attributes))
	resource := one.ResourceSpans().At(0)
	resource.Resource().Attributes().PutStr("service.version", version)
	resource.Resource().Attributes().PutStr("service.instance.id", replica)
	span := resource.ScopeSpans().At(0).Spans().At(0)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Second)))
	return one
}

// run sends requests for a time.
func (tr *traffic) run(t *testing.T, length time.Duration, to ...*comparing) {
	t.Helper()
	for range int(length / time.Second) {
		time.Sleep(time.Second)
		for _, traces := range tr.second(time.Now()) {
			for _, c := range to {
				require.NoError(t, c.consume(t.Context(), traces))
			}
		}
	}
}

func TestCompare_VerdictsOnVersions(t *testing.T) {
	for name, c := range map[string]struct {
		candidate       float64
		verdict, reason string
	}{
		"as good":                {0.2, "pass", "equivalent"},
		"worse by the tolerance": {0.272, "undecided", "difference"},
		"far worse":              {0.6, "fail", "difference"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := startComparing(t, componenttest.NewNopHost(), func(c *Config) {
					c.Compare = []compare.Question{{Pair: compare.Pair{Dimension: "service.version", Baseline: "v1", Candidate: "v2", SLO: "tpot"}}}
				})
				began := time.Now()
				v := e.ask(t, nil)
				require.Equal(t, []string{"undecided", "too_few"}, []string{v.Verdict, v.Reason})
				require.Contains(t, e.scrape(t), `tokenpulse_compare_verdict{baseline="v1",candidate="v2",dimension="service.version",slo="tpot",verdict="undecided"} 1`)

				newTraffic(c.candidate).run(t, 40*time.Minute, e)
				v = e.ask(t, nil)
				require.Equal(t, []string{c.verdict, c.reason}, []string{v.Verdict, v.Reason}, v.Hint)
				require.InDelta(t, float64(began.Unix()), v.Since, 10)
				require.InDelta(t, 4*60*38, v.Candidate.Requests, 100, "windows of the last 2 minutes are open")
				require.Equal(t, 5, v.Candidate.Replicas)
				require.Equal(t, [3]any{(*interval)(nil), (*float64)(nil), (*float64)(nil)}, [3]any{v.PercentileRatio, v.Baseline.Lower, v.Candidate.Upper}, "not of an SLO")
				require.InDelta(t, c.candidate*float64(v.Candidate.Requests), v.Candidate.Bad, 250)
				require.Contains(t, e.scrape(t), fmt.Sprintf(`verdict="%s"} 1`, c.verdict))
				for _, other := range []string{"pass", "fail", "undecided"} {
					if other != c.verdict {
						require.Contains(t, e.scrape(t), fmt.Sprintf(`verdict="%s"} 0`, other))
					}
				}
				e.stop(t)
			})
		})
	}
}

// Times to the first token are from 0.1 s to 1.1 s, alike, and twice that: the p90 is 1 s and 2 s.
func TestCompare_PercentilesHaveIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startComparing(t, componenttest.NewNopHost(), nil)
		p90 := url.Values{"slo": nil, "indicator": {"time_to_first_token"}, "percentile": {"90"}}
		e.begin(t, p90)
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
		for range 25 * 60 {
			time.Sleep(time.Second)
			for factor, version := range []string{"v1", "v2"} {
				for range 4 {
					first := float64(factor+1) * (0.1 + random.Float64())
					one := requestOf(version, fmt.Sprint(version, random.IntN(5)), time.Now().Add(-time.Second), map[string]any{"tokenpulse.time_to_first_token": first})
					require.NoError(t, e.consume(t.Context(), one))
				}
			}
		}
		v := e.ask(t, p90)
		require.Equal(t, []string{"fail", "difference"}, []string{v.Verdict, v.Reason}, v.Hint)
		v.Baseline.requireAround(t, 1)
		v.Candidate.requireAround(t, 2)
		v.PercentileRatio.requireAround(t, 2)
		require.Greater(t, *v.Ratio.Lower, 2.0, "half of the candidate's requests are over the p90 of the baseline")
		e.stop(t)
	})
}

func (c *comparing) scrape(t *testing.T) string {
	t.Helper()
	return c.serve(httptest.NewRequestWithContext(t.Context(), http.MethodGet, metricsPath, http.NoBody)).Body.String()
}

// A gateway that receives the spans of two Collectors, some of them later, has the evidence of one that saw all.
func TestCompare_AGatewayAgreesWithOneCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, gateway := startComparing(t, componenttest.NewNopHost(), nil), startComparing(t, componenttest.NewNopHost(), nil)
		one.begin(t, nil)
		gateway.begin(t, nil)
		tr := newTraffic(0.3)
		var late []ptrace.Traces
		for second := range 30 * 60 {
			time.Sleep(time.Second)
			for version, traces := range tr.second(time.Now()) {
				require.NoError(t, one.consume(t.Context(), traces))
				if version == "v2" {
					late = append(late, traces)
				} else {
					require.NoError(t, gateway.consume(t.Context(), traces))
				}
			}
			if second%30 == 29 {
				for _, traces := range late {
					require.NoError(t, gateway.consume(t.Context(), traces))
				}
				late = nil
			}
		}
		v := one.ask(t, nil)
		require.Positive(t, v.Candidate.Bad)
		require.Equal(t, v, gateway.ask(t, nil))
		one.stop(t)
		gateway.stop(t)
	})
}

// A restart in the middle changes no verdict.
func TestCompare_AgreesAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := storagetest.FileStorage
		host := storagetest.NewHost(t)
		stored := func(c *Config) { c.Shared.StorageID = &id }
		through, restarted := startComparing(t, componenttest.NewNopHost(), nil), startComparing(t, host, stored)
		through.begin(t, nil)
		restarted.begin(t, nil)
		tr := newTraffic(0.3)
		for range 3 {
			tr.run(t, 10*time.Minute, through, restarted)
			restarted.stop(t)
			restarted = startComparing(t, host, stored)
		}
		v, after := through.ask(t, nil), restarted.ask(t, nil)
		require.Positive(t, v.Candidate.Bad)
		require.Equal(t, v, after)
		through.stop(t)
		restarted.stop(t)
	})
}

// Evidence in the form of another build is refused: the pair begins anew, and the log says so.
func TestCompare_EvidenceOfAnotherBuildBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, id := storagetest.NewMemory(), storagetest.FileStorage
		host := storagetest.Host{id: memory}
		e := startComparing(t, host, func(c *Config) { c.Shared.StorageID = &id })
		e.begin(t, nil)
		newTraffic(0.6).run(t, 20*time.Minute, e)
		require.Equal(t, "fail", e.ask(t, nil).Verdict)
		e.stop(t)
		stored := 0
		for key, value := range memory.Values {
			if !strings.HasPrefix(key, "pair/") {
				continue
			}
			var entry map[string]any
			require.NoError(t, json.Unmarshal(value, &entry))
			evidence, err := base64.StdEncoding.DecodeString(entry["evidence"].(string))
			require.NoError(t, err)
			evidence[0] = 2 // the form before fail had a tolerance
			entry["evidence"] = evidence
			memory.Values[key], err = json.Marshal(entry)
			require.NoError(t, err)
			stored++
		}
		require.Equal(t, 1, stored)

		core, logs := observer.New(zap.ErrorLevel)
		restarted := newComparisons(e.config)
		require.NoError(t, restarted.start(t.Context(), host, e.id, e.config, zap.New(core)))
		require.Len(t, logs.All(), 1)
		require.Contains(t, logs.All()[0].Message, "pairs of `compare` begin anew, others have to be begun with POST")
		require.Contains(t, fmt.Sprint(logs.All()[0].ContextMap()), "unknown version of a pair; this build reads version 3")
		q := compare.Question{Pair: compare.Pair{Dimension: "service.version", Baseline: "v1", Candidate: "v2", SLO: "tpot"}}
		q.SetDefaults()
		reply, begun, err := restarted.Begin(&q, time.Now())
		require.NoError(t, err)
		require.True(t, begun)
		require.Equal(t, []any{canary.TooFew, time.Now(), uint64(0)}, []any{reply.Reason, reply.Since, reply.Baseline.Requests})
		require.NoError(t, restarted.Close(t.Context()))
	})
}

func TestCompare_ErrorsHaveARemedy(t *testing.T) {
	e := startComparing(t, componenttest.NewNopHost(), nil)
	for query, want := range map[string]string{
		"dimension=pod":                        "service.version, service.instance.id",
		"baseline=":                            "`baseline` is empty",
		"candidate=":                           "`candidate` is empty",
		"candidate=v1":                         "enter another value",
		"slo=":                                 "`slo` is empty",
		"indicator=time_to_first_token":        "remove `slo`",
		"slo=&indicator=x&percentile=95":       "time_to_first_token, ",
		"slo=&indicator=queue":                 "`percentile` is 0",
		"slo=&indicator=queue&percentile=0.95": "such as 95",
		"slo=&indicator=inter_token_latency&percentile=95": "use one of",
		"tolerance=-1":                  "give a number above 0",
		"tolerance=11":                  "from 0.02 to 10",
		"alpha=0.9":                     "from 1e-06 to 0.5",
		"expected_share=1":              "below 1",
		"since=now":                     "unknown parameter",
		"vantage=client&vantage=engine": "give it once",
		"slo=tpot&slo=ttft":             "give it once",
	} {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			w := e.send(t, method, values)
			require.Equal(t, http.StatusBadRequest, w.Code, query)
			var failed struct {
				Error struct{ Message, Remedy string }
			}
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &failed))
			require.Contains(t, failed.Error.Message+"; "+failed.Error.Remedy, want, query)
		}
	}
	w := e.send(t, http.MethodPut, nil)
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	e.stop(t)
}

// GET changes nothing: only POST begins a pair, and only DELETE ends it. Each answer is about now.
func TestCompare_PairsBeginWithPostAndEndWithDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startComparing(t, componenttest.NewNopHost(), nil)
		unknown := func() {
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				w := e.send(t, method, nil)
				require.Equal(t, http.StatusNotFound, w.Code, method)
				require.Contains(t, w.Body.String(), "begin it with POST and the same parameters, or enter it under `compare`", method)
			}
		}
		unknown()
		first := e.begin(t, nil)
		require.Equal(t, []any{"undecided", "too_few", float64(time.Now().Unix())}, []any{first.Verdict, first.Reason, first.Since})
		time.Sleep(time.Second)
		require.Equal(t, first, e.ask(t, nil))
		require.Equal(t, first, verdictIn(t, e.post(t, nil), http.StatusOK), "it has begun already")
		require.Equal(t, http.StatusNoContent, e.send(t, http.MethodDelete, nil).Code)
		unknown()
		require.Equal(t, first.Since+1, e.begin(t, nil).Since)
		e.stop(t)
	})
}

// An SLO is known by an objective, by its definition in this process, or by a verdict.
func TestCompare_UnknownSLOIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defined := new(int)
		inprocess.SLOs.Set(defined, nil)
		defer inprocess.SLOs.Remove(defined)
		e := startComparing(t, componenttest.NewNopHost(), nil)
		require.Equal(t, http.StatusCreated, e.post(t, url.Values{"slo": {"early"}}).Code, "no SLO is known yet")
		newTraffic(0.2).run(t, 2*time.Second, e)
		inprocess.SLOs.Set(defined, []slo.Definition{{Name: "defined", Indicator: "time_to_first_token", Threshold: 1}})
		for name, known := range map[string]bool{"tpot": true, "defined": true, "all": true, "early": true, "TYPO": false, "Tpot": false} {
			w := e.post(t, url.Values{"slo": {name}})
			if known {
				require.Contains(t, []int{http.StatusOK, http.StatusCreated}, w.Code, "%s: %s", name, w.Body)
				continue
			}
			require.Equal(t, http.StatusBadRequest, w.Code, name)
			require.Contains(t, w.Body.String(), "`slo` is \\\""+name+"\\\", which is unknown")
			require.Contains(t, w.Body.String(), "known: defined, tpot, all;")
		}
		e.begin(t, url.Values{"slo": nil, "indicator": {"time_to_first_token"}, "percentile": {"95"}})
		e.stop(t)
	})
}

// Pairs that nobody configured end at a limit.
func TestCompare_PairsAreLimited(t *testing.T) {
	e := startComparing(t, componenttest.NewNopHost(), nil)
	for i := range compare.MaxPairs {
		e.begin(t, url.Values{"slo": {strconv.Itoa(i)}})
	}
	w := e.post(t, nil)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "end one of those in `meta` with DELETE")
	require.Equal(t, map[string]int64{"pairs": 1}, refusals(t, e.measured))
	require.Equal(t, http.StatusNoContent, e.send(t, http.MethodDelete, url.Values{"slo": {"0"}}).Code)
	e.begin(t, nil)
	e.stop(t)
}

// A round ends a pair without requests, in the storage, too.
func TestCompare_RoundsEndIdlePairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, id := storagetest.NewMemory(), storagetest.FileStorage
		e := startComparing(t, storagetest.Host{id: memory}, func(c *Config) { c.Shared.StorageID = &id })
		e.begin(t, nil)
		pairs := func() (n int) {
			require.NoError(t, e.compared.Save(t.Context()))
			for key := range memory.Values {
				if strings.HasPrefix(key, "pair/") {
					n++
				}
			}
			return n
		}
		require.Equal(t, 1, pairs())
		time.Sleep(25 * time.Hour)
		require.Zero(t, pairs())
		e.stop(t)
	})
}

// Replicas beyond the limit of 64 are merged into one, and their requests counted: so six of 70 that are told apart.
func TestCompare_CountsRequestsOfFoldedReplicas(t *testing.T) {
	const all, limit = 70, 64
	for name, c := range map[string]struct {
		vantage string
		server  map[string]any
		port    bool // another one for each replica
		folded  int
	}{
		"servers by their instance":              {"server", map[string]any{"server.address": "balancer"}, false, all - limit},
		"clients by the servers that they call":  {"client", map[string]any{"server.address": "10.0.0.1"}, true, all - limit},
		"clients behind a balancer":              {"client", map[string]any{"server.address": "balancer"}, false, 0},
		"clients that do not know their servers": {"client", nil, false, all - limit},
	} {
		t.Run(name, func(t *testing.T) {
			e := startComparing(t, componenttest.NewNopHost(), func(c *Config) { c.Page.Enabled = false })
			q := compare.Question{Pair: compare.Pair{Dimension: "service.version", Baseline: "v1", Candidate: "v2", SLO: "tpot", Vantage: c.vantage}}
			_, _, err := e.compared.Begin(&q, time.Now())
			require.NoError(t, err)
			for replica := range all {
				attributes := map[string]any{"tokenpulse.slo.met": []any{"tpot"}, "tokenpulse.vantage": c.vantage}
				maps.Copy(attributes, c.server)
				if c.port {
					attributes["server.port"] = 8000 + replica
				}
				require.NoError(t, e.consume(t.Context(), requestOf("v1", strconv.Itoa(replica), time.Now(), attributes)))
			}
			require.EqualValues(t, c.folded, keepertest.Value(t, e.measured, "token_sli_comparisons_folded"))
			e.stop(t)
		})
	}
}

// edge is a Collector that sends the metrics of its spans to a gateway.
func edge(t *testing.T, gateway *comparing) *publish.Publisher {
	t.Helper()
	config := publish.NewDefaultConfig()
	config.Shared.Series.Dimensions = gateway.config.Shared.Series.Dimensions
	telemetry := componenttest.NewTelemetry()
	refused, err := telemetry.NewTelemetrySettings().MeterProvider.Meter("").Int64Counter("refused")
	require.NoError(t, err)
	next, err := consumer.NewMetrics(gateway.consumeMetrics)
	require.NoError(t, err)
	p, err := publish.New(publish.Settings{
		Config: &config, Telemetry: telemetry.NewTelemetrySettings(), Component: component.MustNewID("token_sli"), Kind: component.KindConnector,
		Scope: "edge", Next: next, Refused: refused, Now: time.Now,
	})
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	return p
}

// Two Collectors see one version each, and send metrics to a gateway.
func TestCompare_FromMetricsAgreesWithTheTraffic(t *testing.T) {
	for candidate, want := range map[float64]string{0.2: "pass", 0.6: "fail"} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gateway := startComparing(t, componenttest.NewNopHost(), nil)
				gateway.begin(t, nil)
				edges := map[string]*publish.Publisher{"v1": edge(t, gateway), "v2": edge(t, gateway)}
				tr := newTraffic(candidate)
				sent, bad := map[string]int{}, map[string]int{}
				for range 40 * 60 {
					time.Sleep(time.Second)
					for version, traces := range tr.second(time.Now()) {
						edges[version].Keeper.Record(t.Context(), traces)
						for _, resource := range traces.ResourceSpans().All() {
							sent[version]++
							if _, ok := resource.ScopeSpans().At(0).Spans().At(0).Attributes().Get("tokenpulse.slo.breached"); ok {
								bad[version]++
							}
						}
					}
				}
				time.Sleep(time.Second) // else the last points have the time of those before
				for _, e := range edges {
					e.Keeper.Shutdown(t.Context())
				}
				time.Sleep(4 * time.Minute) // all windows close
				v := gateway.ask(t, nil)
				require.Equal(t, want, v.Verdict, v.Hint)
				require.Equal(t, [2]int{sent["v1"], sent["v2"]}, [2]int{v.Baseline.Requests, v.Candidate.Requests})
				require.Equal(t, [2]int{bad["v1"], bad["v2"]}, [2]int{v.Baseline.Bad, v.Candidate.Bad})
				require.Equal(t, [2]int{5, 5}, [2]int{v.Baseline.Replicas, v.Candidate.Replicas})
				gateway.stop(t)
			})
		})
	}
}
