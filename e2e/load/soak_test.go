// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package load tests memory, goroutines and connections under load.
package load

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
	"github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// The defaults are the short form, for CI. `make suite-soak` is the long one.
var (
	soakWarmup = flag.Duration("soak-warmup", 6*time.Second, "time at twice capacity before the first measurement of TestSoak")
	soakHalf   = flag.Duration("soak-half", 8*time.Second, "time at half capacity")
	soakDouble = flag.Duration("soak-double", 5*time.Second, "time at twice capacity")
	// In the short form the garbage collector alone moves the RSS by 15%.
	soakGrowth = flag.Float64("soak-growth", 0.3, "allowed growth of the RSS while at half capacity")
)

// soakMemory is max_memory_mib.
const soakMemory = 32

// soakStreams bounds max_streams, so that one request can open them all within soakMemory.
const soakStreams = 8000

// soakConfig has low limits and short times, so that each map and each window is full
// before the first measurement, and empty after a rest.
const soakConfig = `
extensions:
  pprof: {endpoint: "${env:PPROF}"}
receivers:
  token_stream:
    idle_timeout: ${env:IDLE_TIMEOUT}
    first_token_timeout: ${env:IDLE_TIMEOUT}
    max_streams: ${env:MAX_STREAMS}
    max_share_per_client: 1
    max_memory_mib: ${env:MAX_MEMORY_MIB}
    max_live_requests: 200
processors:
  token_latency:
    slos:
      - {name: first, indicator: time_to_first_token, threshold: 50ms}
      - {name: never, indicator: time_to_first_token, threshold: 50ms, match: {gen_ai.request.model: misspelt}}
exporters:
  token_sli: &shared
    max_series: 50
    series_expiration: 2s
    windows: [10s]
    deduplication: {horizon: 2s, max_spans: 10000}
    objectives: [{slo: first, objective: 0.9}]
  nop:
connectors:
  token_sli/sent:
    max_series: 50
    series_expiration: 2s
    metrics_flush_interval: 1s
    deduplication: {horizon: 2s, max_spans: 10000}
    objectives: [{slo: first, objective: 0.9}]
service:
  extensions: [pprof]
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli, token_sli/sent]}
    metrics: {receivers: [token_sli/sent], exporters: [nop]}
    logs: {receivers: [token_sli/sent], exporters: [nop]}
`

// soak watches a Collector under load.
type soak struct {
	load        *soakLoad
	maxStreams  int
	self, pprof string
}

func startSoak(t *testing.T, maxStreams int) *soak {
	t.Helper()
	self, reportSelf := collector.WithSelfMetrics(t)
	s := &soak{maxStreams: maxStreams, self: self, pprof: collector.FreeAddress(t)}
	for name, value := range map[string]string{
		"PPROF": s.pprof, "IDLE_TIMEOUT": abandonedFor.String(),
		"MAX_STREAMS": strconv.Itoa(maxStreams), "MAX_MEMORY_MIB": strconv.Itoa(soakMemory),
	} {
		collector.Setenv(t, name, value)
	}
	c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "config.yaml", soakConfig), reportSelf...)
	s.load = newSoakLoad(t, c, maxStreams)
	return s
}

// text returns a profile, after a garbage collection.
func (s *soak) text(t *testing.T, profile string) []byte {
	t.Helper()
	return collector.Get(t, fmt.Sprintf("http://%s/debug/pprof/%s?debug=1&gc=1", s.pprof, profile), "")
}

// profile returns a number from a profile.
func (s *soak) profile(t *testing.T, name, pattern string) int64 {
	t.Helper()
	text := s.text(t, name)
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	require.NotNil(t, found, "no %s in the profile %s", pattern, name)
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	require.NoError(t, err)
	return n
}

// goroutines returns the number of goroutines without connections of the test.
func (s *soak) goroutines(t *testing.T) int64 {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	return s.profile(t, "goroutine", `total (\d+)`)
}

// heap returns the bytes of live objects.
func (s *soak) heap(t *testing.T) int64 {
	t.Helper()
	s.profile(t, "heap", `# HeapAlloc = (\d+)`) // finalizers and pools need two collections
	return s.profile(t, "heap", `# HeapAlloc = (\d+)`)
}

// sampled is what a phase of load showed.
type sampled struct {
	rss            []int64
	requests       int64
	sent, accepted int64
	refused        int64
}

// under puts the Collector under load, and checks its limits all the time.
func (s *soak) under(t *testing.T, lasts time.Duration, rate, share float64) (got sampled) {
	t.Helper()
	refused := exposition.ScrapeSelf(t, s.self).Of("receiver_token_stream_streams_refused")
	number, sent, accepted := s.load.number.Load(), s.load.sent.Load(), s.load.accepted.Load()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.load.run(ctx, rate, share)
	}()
	for ctx.Err() == nil {
		time.Sleep(250 * time.Millisecond)
		m := exposition.ScrapeSelf(t, s.self)
		got.rss = append(got.rss, m.Of("process_memory_rss"))
		got.refused = m.Of("receiver_token_stream_streams_refused") - refused
		// Reservations of requests that are about to be refused are included: two streams of
		// each sender, and those of a request of abandon.
		require.LessOrEqual(t, m.Of("receiver_token_stream_streams_open"), int64(s.maxStreams*3/2+2*soakSenders))
		require.LessOrEqual(t, m.Of("receiver_token_stream_memory_held"), m.Of("receiver_token_stream_memory_limit"))
		require.LessOrEqual(t, m.Of("receiver_token_stream_live_requests_open"), m.Of("receiver_token_stream_live_requests_limit"))
		require.LessOrEqual(t, m.Of("token_sli_series"), m.Of("token_sli_series_limit"))
		require.LessOrEqual(t, m.Of("token_sli_history_memory"), m.Of("token_sli_history_memory_limit"))
	}
	<-done
	got.requests, got.sent, got.accepted = s.load.number.Load()-number, s.load.sent.Load()-sent, s.load.accepted.Load()-accepted
	return got
}

// rested is a Collector without load.
type rested struct{ goroutines, heap int64 } // heap without the history of the live page

// rest waits until the Collector holds nothing any more. The number of goroutines must
// fall to that at the start.
func (s *soak) rest(t *testing.T, when string, start int64) rested {
	t.Helper()
	s.load.disconnect(t)
	var m exposition.SelfMetrics
	require.Eventually(t, func() bool {
		m = exposition.ScrapeSelf(t, s.self)
		return m.Of("receiver_token_stream_streams_open")+m.Of("receiver_token_stream_live_requests_open")+m.Of("token_sli_series") == 0
	}, 2*collector.Patience, 100*time.Millisecond, "%s: the Collector does not get rid of streams, requests or series", when)
	events, spans := m.Remainders()
	require.Zero(t, events, "%s: events without account", when)
	// The connector has two outputs, and each output gets every span.
	require.Equal(t, 2*m.Emitted(), spans*-1, "%s: spans without account", when)
	var r rested
	if !assert.Eventually(t, func() bool {
		r.goroutines = s.goroutines(t)
		return r.goroutines <= start
	}, collector.Patience, 100*time.Millisecond, "%s: goroutines, %d at the start", when, start) {
		t.Fatalf("%s", s.text(t, "goroutine"))
	}
	// The history of the live page grows with time, up to a limit of its own.
	history := exposition.ScrapeSelf(t, s.self).Of("token_sli_history_memory")
	r.heap = s.heap(t) - history
	t.Logf("%s: %d goroutines, %.2f MiB live heap, and %.2f MiB of history", when, r.goroutines, exposition.Mebi(r.heap), exposition.Mebi(history))
	return r
}

// requireMaxStreams checks that a request which opens one stream more than max_streams is refused
// because of that limit, and one that opens as many as the limit is not. Load meets other limits,
// too: requests and streams take memory.
func (s *soak) requireMaxStreams(t *testing.T) {
	t.Helper()
	open := func(streams int) error {
		all := &tokenpulsev1.ResourceTokenStreams{}
		for range streams {
			all.TokenStreams = append(all.TokenStreams, &tokenpulsev1.TokenStream{
				StreamId: fmt.Sprintf("open-%d", s.load.number.Add(1)),
				Start:    &tokenpulsev1.StreamStart{TimeUnixNano: uint64(time.Now().UnixNano())},
			})
		}
		_, err := s.load.grpc.Export(t.Context(), &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{all}})
		return err
	}
	refused := func() int64 {
		return exposition.ScrapeSelf(t, s.self).Of("receiver_token_stream_streams_refused", "limit=max_streams")
	}
	before := refused()
	require.ErrorContains(t, open(s.maxStreams+1), "max_streams")
	require.Equal(t, int64(1), refused()-before)
	require.NoError(t, open(s.maxStreams))
}

// Half of its capacity costs a Collector no more memory after half an hour than after the
// warm-up, with clients that break off requests, ever new series, and streams that never
// end. Twice its capacity is refused, at bounded memory, and leaves nothing behind.
func TestSoak_MemoryAndGoroutinesStayBounded(t *testing.T) {
	scout := startSoak(t, 100_000)
	capacity := scout.load.saturate(min(3*time.Second, *soakWarmup))
	scout.load.collector.Stop(t)

	// A quarter of the requests are broken off and leave a stream open. At half capacity,
	// they take a quarter of all places, and streams without an end another quarter.
	s, started := startSoak(t, min(int(capacity/2*abandonedFor.Seconds()), soakStreams)), time.Now()
	start := s.goroutines(t)
	for range 20 { // until closed connections are gone
		time.Sleep(50 * time.Millisecond)
		start = min(start, s.goroutines(t))
	}
	t.Logf("capacity: %.0f requests per second, %d streams; %d goroutines at the start", capacity, s.maxStreams, start)

	// Tables keep the size that they once had. So the warm-up fills all places, as the overload
	// does: their size follows from the capacity of the machine.
	s.under(t, *soakWarmup, 2*capacity, 4)
	warm := s.rest(t, "after the warm-up", start)

	half := s.under(t, *soakHalf, capacity/2, 0.25)
	window := max(1, len(half.rss)/5)
	before, after := reference.Mean(half.rss[:window]), reference.Mean(half.rss[len(half.rss)-window:])
	t.Logf("half capacity: %d requests, RSS %.1f MiB, then %.1f MiB (%+.1f%%)", half.requests, before/(1<<20), after/(1<<20), 100*(after/before-1))
	require.LessOrEqual(t, after, before*(1+*soakGrowth), "RSS")
	require.Equal(t, half.sent, half.accepted, "requests at half capacity")
	rested := s.rest(t, "after half capacity", start)
	// Bounded caches and the buffers of scrapes differ by up to 1 MiB from one rest to the next.
	allowed := max(warm.heap/10, 2<<20)
	t.Logf("the live heap grew by %d bytes; a leak of %.1f bytes per request is an error", rested.heap-warm.heap, float64(allowed)/float64(half.requests))
	require.LessOrEqual(t, rested.heap, warm.heap+allowed, "live heap")

	// The machine may be slower now than when the capacity was measured. Streams without an end
	// alone fill all places, unless it is too slow for them.
	var double sampled
	for attempt := 0; attempt < 5 && double.refused == 0; attempt++ {
		double = s.under(t, *soakDouble, 2*capacity, 4)
	}
	t.Logf("twice capacity: %d requests, %d refused, RSS at most %.1f MiB", double.requests, double.refused, exposition.Mebi(slices.Max(double.rss)))
	require.Positive(t, double.refused)
	// What is held may be garbage as often as it is live.
	require.LessOrEqual(t, slices.Max(double.rss), slices.Max(half.rss)+2*soakMemory<<20, "RSS at twice capacity")
	rested = s.rest(t, "after twice capacity", start)
	require.LessOrEqual(t, rested.heap, warm.heap+allowed, "live heap")

	s.requireMaxStreams(t)
	s.rest(t, "after max_streams", start)

	again := s.under(t, 2*time.Second, capacity/2, 0.25)
	require.Equal(t, again.sent, again.accepted, "requests after the overload")

	warnings := 0
	if time.Since(started) > 15*time.Minute { // in the long form only
		warnings = 1
	}
	require.Equal(t, warnings, strings.Count(s.load.collector.Output(t), `no request matched these SLOs`), "warnings about the SLO that never applies")
}
