// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
)

// Metrics count every request, though only 1% of the spans and those of breaches are sent; token_sli
// gets both and counts each request once; and an exemplar's span can be found.
func TestExampleWireSampledTraces_MetricsAreOfAllRequests(t *testing.T) {
	t.Parallel()
	spansFile := collector.ExampleEnvironment(t)
	collector.Setenv(t, "FLUSH_INTERVAL", "1s")
	c := collector.Start(t, collector.Example(t, "wire-sampled-traces.yaml"))
	const streams, slowEvery, tokens = 4000, 100, 5
	var lines strings.Builder
	begin := time.Now().Add(-time.Minute)
	for i := range streams {
		event := tokenevents.EventsOf(&lines, fmt.Sprint("sampled-", i), begin)
		event("start", 0, `,"attributes":{"gen_ai.operation.name":"chat","gen_ai.request.model":"m"}`)
		at := 200 * time.Millisecond
		if i%slowEvery == 0 {
			at = 3 * time.Second
		}
		event("chunk", at, "")
		for range tokens - 1 {
			at += 20 * time.Millisecond
			event("chunk", at, "")
		}
		event("end", at+time.Millisecond, "")
	}
	body := lines.String()
	for range 2 { // the second time as a sender that lost the answer
		c.Post(t, "application/x-ndjson", strings.NewReader(body))
	}

	require.Eventually(t, func() bool {
		return strings.Contains(string(collector.Get(t, c.MetricsURL(), "text/plain")), "tokenpulse_requests_total{")
	}, collector.Patience, 100*time.Millisecond, "the receiver flushes its series")
	require.Eventually(t, func() bool { return exposition.RequestCount(exposition.ScrapeAny(t, c.MetricsURL())) == streams }, collector.Patience, 100*time.Millisecond)
	families := exposition.Scrape(t, c)
	gaps, exemplars := uint64(0), []*dto.Exemplar(nil)
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			histogram := metric.GetHistogram()
			if name == "tokenpulse_inter_token_latency_seconds" {
				gaps += histogram.GetSampleCount()
			}
			exemplars = append(exemplars, histogram.GetExemplars()...)
			for _, bucket := range histogram.GetBucket() {
				if bucket.Exemplar != nil {
					exemplars = append(exemplars, bucket.Exemplar)
				}
			}
		}
	}
	require.EqualValues(t, streams*(tokens-1), gaps)
	time.Sleep(2500 * time.Millisecond) // two more flushes count nothing again
	require.Equal(t, streams, exposition.RequestCount(exposition.Scrape(t, c)))
	c.Stop(t)

	sent, breached := sampledSpans(t, spansFile)
	require.Equal(t, streams/slowEvery, breached, "every breach")
	require.InDelta(t, 0.01*streams*(1-1./slowEvery), len(sent)-breached, 32, "1% of the others: five standard deviations")
	require.NotEmpty(t, exemplars)
	for _, exemplar := range exemplars {
		labels := map[string]string{}
		for _, label := range exemplar.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		require.True(t, sent[labels["trace_id"]+labels["span_id"]], "%v is the exemplar of a span that was not sent", labels)
	}
}

// sampledSpans returns the spans in a file, each once, and the number of those that breach an SLO. It
// checks that each was kept by the rule of the specification.
func sampledSpans(t *testing.T, file string) (sent map[string]bool, breached int) {
	t.Helper()
	sent = map[string]bool{}
	for _, span := range otlpfile.ReadSpans(t, file) {
		trace, id := span.TraceID(), span.SpanID()
		key := hex.EncodeToString(trace[:]) + hex.EncodeToString(id[:])
		if sent[key] {
			continue
		}
		sent[key] = true
		aggregated, _ := span.Attributes().Get("tokenpulse.aggregated")
		require.True(t, aggregated.Bool())
		_, firstToken := span.Attributes().Get("tokenpulse.time_to_first_token")
		require.True(t, firstToken, "annotated")
		if _, breach := span.Attributes().Get("tokenpulse.slo.breached"); breach {
			breached++
			require.Equal(t, "ot=th:0", span.TraceState().AsRaw())
			continue
		}
		require.Equal(t, "ot=th:fd70a", span.TraceState().AsRaw())
		randomness, err := strconv.ParseUint(hex.EncodeToString(trace[9:]), 16, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, randomness, uint64(0xfd70a000000000))
	}
	require.NotEmpty(t, sent)
	return sent, breached
}
