// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

const (
	// replicasLength is the length of the traffic to replicas, of which one of slowModel is slow from slowFrom on.
	replicasLength, slowFrom = 4 * time.Hour, 3 * time.Hour
	slowModel, evenModel     = "one-of-nine-slow", "nine-equal"
)

// replicaTraffic draws requests of equal replicas.
type replicaTraffic struct {
	*rand.Rand
	sent int
}

func newReplicaTraffic() *replicaTraffic {
	return &replicaTraffic{Rand: rand.New(rand.NewPCG(1, 2))}
}

// fewRequests are those of a minute, hardly more than the alert needs.
const fewRequests = 6.0

// requestsOfMinute returns how many requests a replica gets in a minute.
func (r *replicaTraffic) requestsOfMinute(mean float64) (n int) {
	for at := r.ExpFloat64(); at < mean; at += r.ExpFloat64() {
		n++
	}
	return n
}

// draw returns times to the first token and per token. Hits and misses of a cache are equally likely, which
// makes the median of the first a matter of chance.
func (r *replicaTraffic) draw() (first, perToken time.Duration) {
	around := func(median, spread float64) time.Duration {
		return time.Duration(median * math.Exp(spread*r.NormFloat64()) * float64(time.Second))
	}
	first = around(0.2, 0.3)
	if r.IntN(2) == 0 {
		first = around(2, 0.3)
	}
	return first, around(0.02, 0.5)
}

// write writes a request to a replica that ends at a time. Its tokens take slower times as long as those of others.
func (r *replicaTraffic) write(to io.Writer, requested string, engine int, end time.Time, slower float64) {
	first, perToken := r.draw()
	perToken = time.Duration(slower * float64(perToken))
	r.sent++
	event := tokenevents.EventsOf(to, fmt.Sprint("replica-", r.sent), end.Add(-first-20*perToken))
	event("start", 0, fmt.Sprintf(`,"vantage":"client","attributes":{"gen_ai.request.model":%q,"server.address":"engine-%d"}`, requested, engine))
	event("chunk", first, "")
	event("chunk", first+20*perToken, `,"tokens":20`)
	event("end", first+20*perToken, "")
}

const configOfReplicas = `
receivers:
  token_stream:
processors:
  token_latency:
exporters:
  token_sli:
    dimensions: [gen_ai.request.model, server.address]
    windows: []
    page: {enabled: false}
    metrics: {tokenpulse.inter_token_latency: {enabled: false}, tokenpulse.phase.duration: {enabled: false}, tokenpulse.request.duration: {enabled: false}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli]}
`

// A real Prometheus evaluates TokenReplicaSlow at each minute of four hours, in both forms of histograms.
func TestReplicaSlow_FindsOneOfNineAndNeverAnEqualOne(t *testing.T) {
	t.Parallel()
	rule := replicaRule(t)
	recorded := newRecording(append(rule.slowness, "tokenpulse_requests_total")...)
	c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "replicas.yaml", configOfReplicas))
	begin, traffic := time.Now().Add(-replicasLength-time.Hour).Truncate(time.Minute).Add(7*time.Second), newReplicaTraffic()
	for minute := time.Duration(0); minute < replicasLength; minute += time.Minute {
		var events strings.Builder
		for _, to := range []string{slowModel, evenModel} {
			for engine := 1; engine <= 9; engine++ {
				slower, mean := 1., fewRequests
				if to == slowModel { // fewer ones would begin the waiting time anew at times
					mean *= 2
				}
				if to == slowModel && engine == 9 && minute >= slowFrom {
					slower = 4.5
				}
				for range traffic.requestsOfMinute(mean) {
					traffic.write(&events, to, engine, begin.Add(minute+time.Duration(traffic.Int64N(int64(time.Minute)))), slower)
				}
			}
		}
		c.Post(t, "application/x-ndjson", strings.NewReader(events.String()))
		recorded.add(exposition.Scrape(t, c), begin.Add(minute+time.Minute))
	}
	slow := "gen_ai_request_model=" + slowModel + " job=tokenpulse server_address=engine-9 vantage=client"
	for name, setup := range installedSetups(t) {
		t.Run(name, func(t *testing.T) {
			p := recorded.replay(t, setup)
			judged, over, alerts := 0, 0, map[string]time.Time{}
			for _, slowness := range rule.slowness {
				for labels, samples := range eachMinute(t, p, slowness, begin, recorded.last) {
					judged += len(samples)
					samples = slices.DeleteFunc(samples, func(s sampleAt) bool { return s.value <= rule.limit })
					if labels != slow {
						over += len(samples)
					}
					if since, found := lasting(samples, rule.lasting); found {
						alerts[labels] = since
					}
				}
			}
			t.Logf("%d evaluations, %d over the limit without a slow replica, alerts %v", judged, over, alerts)
			require.Greater(t, judged, int(replicasLength/time.Minute)*2*2*9*4/5, "nearly all have enough requests")
			require.Contains(t, alerts, slow)
			require.Len(t, alerts, 1, "a false alarm")
			late := alerts[slow].Sub(begin.Add(slowFrom))
			t.Logf("fires %v after the replica got slow", late)
			require.Greater(t, late, rule.lasting)
			require.Less(t, late, 2*rule.lasting)
		})
	}
}

// replicaAlert is what the alert TokenReplicaSlow evaluates.
type replicaAlert struct {
	group    any      // of rules.yaml
	slowness []string // a query for each indicator
	limit    float64
	lasting  time.Duration
}

func replicaRule(t *testing.T) (rule replicaAlert) {
	t.Helper()
	const recorded = "tokenpulse_replica:slowness"
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct{ Record, Alert, Expr, For string }
		}
	}
	var raw struct{ Groups []any }
	parse(t, prometheusExample(t, "rules.yaml"), &rules)
	parse(t, prometheusExample(t, "rules.yaml"), &raw)
	for i, group := range rules.Groups {
		if group.Name != "tokenpulse-replicas" {
			continue
		}
		rule.group = raw.Groups[i]
		for _, r := range group.Rules {
			if r.Record == recorded {
				rule.slowness = append(rule.slowness, r.Expr)
				continue
			}
			limit, found := strings.CutPrefix(r.Expr, recorded+" > ")
			require.True(t, found, r.Expr)
			length, err := model.ParseDuration(r.For)
			require.NoError(t, err)
			rule.limit, rule.lasting = promserver.Parsed(t, limit), time.Duration(length)
		}
	}
	require.Len(t, rule.slowness, 2, "an indicator each")
	require.Positive(t, rule.lasting)
	return rule
}

type sampleAt struct {
	at    time.Time
	value float64
}

// eachMinute returns what a query answers at each whole minute, by labels.
func eachMinute(t *testing.T, p *promserver.Server, query string, from, to time.Time) map[string][]sampleAt {
	t.Helper()
	all := map[string][]sampleAt{}
	for _, series := range p.Matrix(t, "query_range", url.Values{
		"query": {query}, "start": {strconv.FormatInt(from.Truncate(time.Minute).Unix(), 10)}, "end": {strconv.FormatInt(to.Unix(), 10)}, "step": {"60"},
	}) {
		labels := labelText(series.Metric)
		for _, value := range series.Values {
			all[labels] = append(all[labels], sampleAt{time.Unix(int64(value[0].(float64)), 0), promserver.Number(t, value)})
		}
	}
	return all
}

// lasting returns when samples first had followed each other without a gap for a length.
func lasting(samples []sampleAt, length time.Duration) (at time.Time, found bool) {
	start := 0
	for i := range samples {
		if i > 0 && samples[i].at.Sub(samples[i-1].at) > time.Minute {
			start = i
		}
		if samples[i].at.Sub(samples[start].at) >= length {
			return samples[i].at, true
		}
	}
	return time.Time{}, false
}

// promtool evaluates the rules for a day, with requests of nine equal replicas in classic buckets.
func TestReplicaSlow_EqualReplicasRaiseNoTicketInADay(t *testing.T) {
	t.Parallel()
	const minutes = 24 * 60
	tool, traffic, folder := testenv.Program(t, "promtool"), newReplicaTraffic(), t.TempDir()
	var series strings.Builder
	for engine := 1; engine <= 9; engine++ {
		ttft, tpot := newBucketSeries(0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5), newBucketSeries(0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.1)
		for range minutes {
			for range traffic.requestsOfMinute(fewRequests) {
				first, perToken := traffic.draw()
				ttft.observe(first.Seconds())
				tpot.observe(perToken.Seconds())
			}
			ttft.scrape()
			tpot.scrape()
		}
		ttft.write(&series, "time_to_first_token", engine)
		tpot.write(&series, "time_per_output_token", engine)
	}
	group, err := json.Marshal(map[string]any{"groups": []any{replicaRule(t).group}})
	require.NoError(t, err)
	test := fmt.Sprintf(`
rule_files: [%q]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
%s    promql_expr_test:
      - expr: count by (indicator) (count_over_time(tokenpulse_replica:slowness[1d]) > %d)
        eval_time: 1d
        exp_samples: [{labels: '{indicator="time_to_first_token"}', value: 9}, {labels: '{indicator="time_per_output_token"}', value: 9}]
      - {expr: 'count_over_time(ALERTS{alertstate="firing"}[1d])', eval_time: 1d, exp_samples: []}
`, collector.WriteFile(t, folder, "rules.yaml", string(group)), series.String(), minutes*4/5)
	collector.Run(t, tool, "test", "rules", collector.WriteFile(t, folder, "test.yaml", test))
}

// bucketSeries are the samples of a classic histogram, one for each minute.
type bucketSeries struct {
	bounds  []float64
	counts  []int // cumulative; the last is that of all
	samples []strings.Builder
}

func newBucketSeries(bounds ...float64) *bucketSeries {
	return &bucketSeries{bounds, make([]int, len(bounds)+1), make([]strings.Builder, len(bounds)+1)}
}

func (b *bucketSeries) observe(value float64) {
	for i := range b.counts {
		if i == len(b.bounds) || value <= b.bounds[i] {
			b.counts[i]++
		}
	}
}

func (b *bucketSeries) scrape() {
	for i := range b.samples {
		fmt.Fprint(&b.samples[i], b.counts[i], " ")
	}
}

// write writes the series as promtool reads them.
func (b *bucketSeries) write(to io.Writer, indicator string, engine int) {
	labels := fmt.Sprintf(`outcome="success", vantage="client", gen_ai_request_model="m", server_address="engine-%d"`, engine)
	for i := range b.samples {
		le := "+Inf"
		if i < len(b.bounds) {
			le = strconv.FormatFloat(b.bounds[i], 'g', -1, 64)
		}
		fmt.Fprintf(to, "      - {series: 'tokenpulse_%s_seconds_bucket{%s, le=%q}', values: '%s'}\n", indicator, labels, le, b.samples[i].String())
	}
	fmt.Fprintf(to, "      - {series: 'tokenpulse_%s_seconds_count{%s}', values: '%s'}\n", indicator, labels, b.samples[len(b.bounds)].String())
}
