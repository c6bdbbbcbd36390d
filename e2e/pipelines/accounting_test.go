// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tracebackend"
)

const accountingConfig = `
receivers:
  token_stream:
    idle_timeout: 1s
    first_token_timeout: 1s
    max_streams: 300
    max_share_per_client: 1
    max_memory_mib: 4
    max_chunks_per_stream: 50
    max_event_bytes: 65536
processors:
  token_latency:
exporters:
  token_sli:
  otlp_http:
    endpoint: ${env:BACKEND}
    sending_queue: {enabled: false}
    retry_on_failure: {enabled: false}
service:
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli, otlp_http]}
`

// seriesConfig extends that with a metrics pipeline of the receiver, which then annotates its
// spans itself.
const seriesConfig = `
receivers:
  token_stream:
    series: {metrics_flush_interval: 200ms}
service:
  pipelines:
    traces: {processors: []}
    metrics: {receivers: [token_stream], exporters: [token_sli]}
`

// memoryPressure extends them with a memory_limiter that refuses all data.
const memoryPressure = `
processors:
  memory_limiter: {check_interval: 100ms, limit_mib: 1}
service:
  pipelines:
    traces: {processors: [memory_limiter, token_latency]}
`

// accounting compares the self-metrics of a Collector with what its senders and its trace
// backend know.
type accounting struct {
	senders *faultySenders
	backend *tracebackend.Backend
	self    string // address of the self-metrics
	series  bool   // the receiver counts the requests

	settled, open int64 // at the last poll
	polls         int
}

// poll checks a Collector in motion. Its self-metrics are not read at one instant, so the
// events of requests in progress, and of streams that may expire, can be missing.
func (a *accounting) poll(t *testing.T) {
	t.Helper()
	settled := a.senders.settled.Load()
	m := exposition.ScrapeSelf(t, a.self)
	inFlight := a.senders.begun.Load() - settled
	mayExpire := a.open + a.senders.begun.Load() - a.settled
	events, spans := m.Remainders()
	require.LessOrEqual(t, max(events, -events), inFlight+mayExpire, "events without account")
	require.LessOrEqual(t, max(spans, -spans), inFlight+mayExpire, "spans without account")
	a.settled, a.open = settled, m.Of("receiver_token_stream_events_open")
	a.polls++
}

// requireBalance stops the senders and checks that nothing is missing. The backend may go
// on to refuse, and streams to expire.
func (a *accounting) requireBalance(t *testing.T, when string) exposition.SelfMetrics {
	t.Helper()
	a.senders.gate.Lock()
	defer a.senders.gate.Unlock()
	var m exposition.SelfMetrics
	var problem string
	if !assert.Eventually(t, func() bool {
		before := a.backend.Received(acceptedEvents)
		m = exposition.ScrapeSelf(t, a.self)
		if before != a.backend.Received(acceptedEvents) {
			return false // an expired stream is on its way
		}
		problem = a.problem(m, before)
		return problem == ""
	}, collector.Patience, 20*time.Millisecond) {
		t.Fatalf("%s: %s", when, problem)
	}
	return m
}

// problem returns why the self-metrics cannot be true.
func (a *accounting) problem(m exposition.SelfMetrics, got tracebackend.Received) string {
	events, spans := m.Remainders()
	accepted := m.Of("receiver_token_stream_events_accepted")
	type check struct {
		what      string
		got, want int64
	}
	checks := []check{
		{"events without account", events, 0},
		{"spans without account", spans, 0},
		{"finished streams", m.Of("receiver_token_stream_streams_finished"), m.Of("receiver_accepted_spans")},
		// What the backend knows: it gets all spans that token_sli gets.
		{"spans emitted", m.Emitted(), got.Presented},
		{"spans accepted", m.Of("receiver_accepted_spans"), got.Taken},
		{"events of finished streams", m.Of("receiver_token_stream_events_finished"), got.Events},
		// What the senders know.
		{"events accepted, at least", min(accepted, a.senders.accepted.Load()), a.senders.accepted.Load()},
		{"events accepted, at most", max(accepted, a.senders.accepted.Load()+a.senders.brokenOff.Load()), a.senders.accepted.Load() + a.senders.brokenOff.Load()},
	}
	if a.series { // only requests whose spans are accepted count
		checks = append(checks,
			check{"requests recorded", m.Of("token_sli_requests"), got.DistinctTaken},
			check{"duplicate requests", m.Of("token_sli_requests_duplicate"), got.Taken - got.DistinctTaken},
			check{"requests counted elsewhere", m.Of("token_sli_requests_aggregated"), got.Presented})
	} else {
		checks = append(checks,
			check{"requests recorded", m.Of("token_sli_requests"), got.Distinct},
			check{"duplicate requests", m.Of("token_sli_requests_duplicate"), got.Presented - got.Distinct})
	}
	for _, c := range checks {
		if c.got != c.want {
			return fmt.Sprintf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
	return ""
}

// Every accepted event is in an emitted span, in an open stream, or lost for a named
// cause; every emitted span is recorded, recognised as a duplicate, or refused. The
// self-metrics show that at any time, whatever goes wrong.
func TestAccounting_SelfMetricsLeaveNoRemainderThroughFaults(t *testing.T) {
	t.Parallel()
	t.Run("spans", func(t *testing.T) { testAccounting(t, false) })
	t.Run("series", func(t *testing.T) { testAccounting(t, true) })
}

func testAccounting(t *testing.T, series bool) {
	t.Helper()
	t.Parallel()
	backend := tracebackend.Start(t)
	self, reportSelf := collector.WithSelfMetrics(t)
	collector.Setenv(t, "BACKEND", backend.Server.URL)
	folder := t.TempDir()
	pressure := collector.WriteFile(t, folder, "pressure.yaml", "")
	more := ""
	if series {
		more = seriesConfig
	}
	configs := slices.Concat(reportSelf, []string{"--config", collector.WriteFile(t, folder, "more.yaml", more), "--config", pressure})
	c := collector.Start(t, collector.WriteFile(t, folder, "config.yaml", accountingConfig), configs...)
	senders := &faultySenders{collector: c, grpc: c.TokenStreams(t), stop: make(chan struct{})}
	a := &accounting{senders: senders, backend: backend, self: self, series: series}
	stop := senders.run(t)
	a.throughFaults(t)
	for attempt := 1; attempt < 5 && faultsMissing(exposition.ScrapeSelf(t, self)) != nil; attempt++ {
		a.throughFaults(t) // a busy machine may send too little for each fault to happen
	}
	stop()
	var m exposition.SelfMetrics
	require.Eventually(t, func() bool {
		m = a.requireBalance(t, "after the senders")
		return m.Of("receiver_token_stream_streams_open") == 0
	}, collector.Patience, 100*time.Millisecond, "streams do not expire")
	require.Zero(t, m.Of("receiver_token_stream_events_open"))
	require.Empty(t, faultsMissing(m), "faults that did not happen")
	require.Eventually(t, func() bool {
		return int64(exposition.RequestCount(exposition.ScrapeAny(t, c.MetricsURL()))) == m.Of("token_sli_requests")
	}, collector.Patience, 50*time.Millisecond,
		"the scraped requests are not those recorded")
	t.Logf("%d polls; %d events accepted, %d finished, %d lost; %d spans emitted, %d recorded, %d duplicate",
		a.polls, m.Of("receiver_token_stream_events_accepted"), m.Of("receiver_token_stream_events_finished"), m.Of("receiver_token_stream_events_lost"),
		m.Emitted(), m.Of("token_sli_requests"), m.Of("token_sli_requests_duplicate"))

	// A reload sends the open streams, and starts all counters again.
	before := backend.Received(acceptedEvents)
	senders.stop = make(chan struct{})
	for range 5 {
		senders.sendAbandoned()
	}
	collector.WriteFile(t, folder, filepath.Base(pressure), memoryPressure)
	c.Signal(syscall.SIGHUP)
	require.Eventually(t, func() bool { return strings.Count(c.Output(t), "Everything is ready") == 2 }, collector.Patience, 50*time.Millisecond)
	after := backend.Received(acceptedEvents)
	require.Equal(t, int64(5), after.Taken-before.Taken)
	require.Equal(t, int64(5*3), after.Events-before.Events)

	// Spans that the memory_limiter refuses reach neither token_sli nor the backend.
	require.Eventually(t, func() bool {
		senders.postOnce()
		return exposition.ScrapeSelf(t, self).Of("processor_memory_limiter_refused_spans") >= 3
	}, collector.Patience, 50*time.Millisecond, "the memory_limiter refuses nothing")
	m = exposition.ScrapeSelf(t, self)
	events, spans := m.Remainders()
	require.Zero(t, events)
	require.Zero(t, spans)
	require.Equal(t, m.Emitted()-m.Of("processor_memory_limiter_refused_spans"), backend.Received(acceptedEvents).Presented-after.Presented)
}

// throughFaults checks the Collector while the backend fails in each way.
func (a *accounting) throughFaults(t *testing.T) {
	t.Helper()
	for _, phase := range []struct {
		answer int
		lasts  time.Duration
	}{
		{http.StatusOK, 2 * time.Second},
		{http.StatusServiceUnavailable, 3 * time.Second},
		{http.StatusOK, 2 * time.Second},
		{http.StatusBadRequest, 5 * time.Second}, // a permanent error, also for expired streams, whose retry may wait 4 s
		{http.StatusOK, 2 * time.Second},
	} {
		a.backend.Answer(phase.answer)
		for end := time.Now().Add(phase.lasts); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			a.poll(t)
			if a.polls%10 == 0 {
				a.requireBalance(t, fmt.Sprintf("while the backend answers %d", phase.answer))
			}
		}
	}
}

// postOnce sends a whole stream without a retry.
func (s *faultySenders) postOnce() {
	id := s.newID("once")
	s.post("application/x-ndjson", tokenevents.Line("start", id, time.Now(), "")+"\n"+tokenevents.Line("end", id, time.Now(), "")+"\n", 2)
}

// faultsMissing returns the faults that did not happen yet.
func faultsMissing(m exposition.SelfMetrics) (missing [][]string) {
	for _, fault := range [][]string{
		{"receiver_refused_spans"},
		{"receiver_token_stream_chunks_dropped"},
		{"receiver_token_stream_duplicates_dropped"},
		{"receiver_token_stream_events_lost", "cause=permanent_error"},
		{"receiver_token_stream_events_rejected", "reason=invalid"},
		{"receiver_token_stream_events_rejected", "reason=limit"},
		{"receiver_token_stream_events_rejected", "reason=malformed"},
		{"receiver_token_stream_events_rejected", "reason=unknown_stream"},
		{"receiver_token_stream_streams_finished", "outcome=incomplete"},
		{"receiver_token_stream_streams_refused", "limit=max_memory_mib"},
		{"receiver_token_stream_streams_refused", "limit=max_streams"},
		{"receiver_token_stream_streams_refused", "limit=pipeline"},
		{"token_sli_requests_duplicate"},
	} {
		if m.Of(fault[0], fault[1:]...) == 0 {
			missing = append(missing, fault)
		}
	}
	return missing
}
