// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter"
	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
)

// distribution is a histogram, or a counter as its sum.
type distribution struct {
	count, zeros uint64
	sum          float64
	buckets      map[int]uint64 // by index of OpenTelemetry
}

// randomSpan returns attributes whose numbers are multiples of 2^-10, so that sums are
// exact in any order.
func randomSpan(random *rand.Rand) map[string]any {
	v := func() float64 { return float64(1+random.IntN(1<<12)) / (1 << 10) }
	return map[string]any{
		"tokenpulse.outcome":                    []string{"success", "error", "cancelled"}[random.IntN(3)],
		"tokenpulse.vantage":                    "server",
		"gen_ai.request.model":                  fmt.Sprint("model-", random.IntN(3)),
		"tokenpulse.time_to_first_token":        v(),
		"tokenpulse.queue.duration":             float64(random.IntN(2)),
		"tokenpulse.decode.duration":            v(),
		"tokenpulse.inter_token_latency.sketch": encoded(v(), v(), 0, v()),
		"gen_ai.usage.output_tokens":            random.IntN(100),
		"tokenpulse.stall.duration":             v(),
	}
}

func randomBatches(n int) (all []ptrace.Traces) {
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		all = append(all, keepertest.Batch(randomSpan(random), randomSpan(random), randomSpan(random)))
	}
	return all
}

// addUp adds the data points of a batch to the totals of each stream.
func addUp(into map[string]*distribution, metrics pmetric.Metrics) {
	stream := func(name, attributes string) *distribution {
		id := name + "{" + attributes + "}"
		if into[id] == nil {
			into[id] = &distribution{buckets: map[int]uint64{}}
		}
		return into[id]
	}
	for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		for _, p := range numberPoints(m).All() {
			stream(m.Name(), show(p.Attributes())).sum += p.DoubleValue() + float64(p.IntValue())
		}
		if m.Type() != pmetric.MetricTypeExponentialHistogram {
			continue
		}
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			d := stream(m.Name(), show(p.Attributes()))
			d.count += p.Count()
			d.zeros += p.ZeroCount()
			d.sum += p.Sum()
			for i, n := range p.Positive().BucketCounts().All() {
				if n > 0 {
					d.buckets[int(p.Positive().Offset())+i] += n
				}
			}
		}
	}
}

// sentBy adds the data points that a publisher sends for the batches.
func sentBy(t *testing.T, into map[string]*distribution, batches ...ptrace.Traces) {
	t.Helper()
	h := newHarness(t, nil)
	for _, batch := range batches {
		h.Keeper.Record(t.Context(), batch)
	}
	h.seconds += 15
	require.NoError(t, h.flush(t.Context()))
	addUp(into, h.to.AllMetrics()[0])
}

func TestFlush_TwoPublishersMergeToOne(t *testing.T) {
	batches := randomBatches(200)
	merged, whole := map[string]*distribution{}, map[string]*distribution{}
	sentBy(t, merged, batches[:100]...)
	sentBy(t, merged, batches[100:]...)
	sentBy(t, whole, batches...)
	require.Greater(t, len(whole), 30)
	require.Equal(t, whole, merged)
}

func TestFlush_DeltasAddUpToCumulativeDespiteRefusals(t *testing.T) {
	batches := randomBatches(200)
	added, whole := map[string]*distribution{}, map[string]*distribution{}
	sentBy(t, whole, batches...)

	random := rand.New(rand.NewPCG(3, 4))
	h := newHarness(t, delta)
	for _, batch := range batches {
		h.seconds++
		h.Keeper.Record(t.Context(), batch)
		if random.IntN(3) == 0 {
			h.to.refuses = random.IntN(2) == 0
			_ = h.flush(t.Context())
		}
	}
	h.to.refuses = false
	require.NoError(t, h.flush(t.Context()))
	for _, metrics := range h.to.AllMetrics() {
		addUp(added, metrics)
	}
	for id, d := range whole { // delta leaves out streams with only zeros
		if d.sum == 0 && d.count == 0 {
			delete(whole, id)
		}
	}
	require.Equal(t, whole, added)
}

func TestFlush_ConcurrentRecordsAreNotLost(t *testing.T) {
	const writers = 4
	h := newHarness(t, func(c *Config) { delta(c); c.FlushInterval = minFlushInterval })
	h.now = time.Now
	require.NoError(t, h.Start(t.Context(), componenttest.NewNopHost()))
	var writing sync.WaitGroup
	for range writers {
		batches := randomBatches(100)
		writing.Go(func() {
			for _, batch := range batches {
				h.Keeper.Record(t.Context(), batch)
			}
		})
	}
	writing.Wait()
	require.NoError(t, h.Shutdown(t.Context()))
	added := map[string]*distribution{}
	for _, metrics := range h.to.AllMetrics() {
		addUp(added, metrics)
	}
	total := 0.0
	for _, outcome := range []string{"success", "error", "cancelled"} {
		for model := range 3 {
			total += added[fmt.Sprintf("tokenpulse.requests{gen_ai.request.model=model-%d,outcome=%s,service.name=chat,vantage=server}", model, outcome)].sum
		}
	}
	require.InDelta(t, writers*300, total, 0)
}

func TestFlush_EqualsAScrapeOfTheExporter(t *testing.T) {
	batches := randomBatches(100)
	sent := map[string]*distribution{}
	sentBy(t, sent, batches...)
	scraped := scrape(t, batches)

	agreed := 0
	for metric, family := range map[string]string{
		"tokenpulse.time_to_first_token": "tokenpulse_time_to_first_token_seconds",
		"tokenpulse.inter_token_latency": "tokenpulse_inter_token_latency_seconds",
		"tokenpulse.inter_chunk_latency": "tokenpulse_inter_chunk_latency_seconds",
		"tokenpulse.requests":            "tokenpulse_requests_total",
		"tokenpulse.phase.duration":      "tokenpulse_phase_duration_seconds",
		"tokenpulse.tokens":              "tokenpulse_tokens_total",
		"tokenpulse.stall.duration":      "tokenpulse_stall_duration_seconds_total",
	} {
		for _, m := range scraped[family].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			attributes := []string{"gen_ai.request.model=" + labels["gen_ai_request_model"], "service.name=" + labels["service_name"], "vantage=server"}
			for _, key := range []string{"outcome", "phase", "type"} {
				if labels[key] != "" {
					attributes = append(attributes, key+"="+labels[key])
				}
			}
			slices.Sort(attributes)
			id := metric + "{" + strings.Join(attributes, ",") + "}"
			require.Equal(t, asDistribution(m), sent[id], id)
			agreed++
		}
	}
	require.Len(t, sent, agreed, "the exporter has the same streams")
}

func asDistribution(m *dto.Metric) *distribution {
	d := &distribution{buckets: map[int]uint64{}, sum: m.GetCounter().GetValue()}
	h := m.Histogram
	if h == nil {
		return d
	}
	d.count, d.zeros, d.sum = h.GetSampleCount(), h.GetZeroCount(), h.GetSampleSum()
	index, n, deltas := 0, int64(0), h.PositiveDelta
	for _, span := range h.PositiveSpan {
		index += int(span.GetOffset())
		for range span.GetLength() {
			n += deltas[0]
			deltas = deltas[1:]
			if n > 0 {
				d.buckets[index-1] = uint64(n) // Prometheus numbers buckets one higher
			}
			index++
		}
	}
	return d
}

// scrape returns the metrics of an exporter that received the batches.
func scrape(t *testing.T, batches []ptrace.Traces) map[string]*dto.MetricFamily {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	factory := tokensliexporter.NewFactory()
	config := factory.CreateDefaultConfig().(*tokensliexporter.Config)
	config.Server.NetAddr.Endpoint = address
	config.Shared.Series.Dimensions = []string{"service.name", "gen_ai.request.model"}
	e, err := factory.CreateTraces(t.Context(), exportertest.NewNopSettings(component.MustNewType("token_sli")), config)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	defer func() {
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, e.Shutdown(t.Context()))
	}()
	for _, batch := range batches {
		require.NoError(t, e.ConsumeTraces(t.Context(), batch))
	}

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Accept", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	decoder := expfmt.NewDecoder(bytes.NewReader(body), expfmt.ResponseFormat(response.Header))
	all := map[string]*dto.MetricFamily{}
	for {
		var family dto.MetricFamily
		err := decoder.Decode(&family)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[family.GetName()] = &family
	}
}
