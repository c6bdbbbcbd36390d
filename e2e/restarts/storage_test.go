// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tracebackend"
)

// storedStreams keeps open streams in a storage, and writes all spans to a file.
const storedStreams = `
extensions:
  file_storage:
    directory: ${env:STORAGE_DIRECTORY}
receivers:
  token_stream:
    storage: file_storage
processors:
  token_latency:
    slos:
      - {name: each, indicator: time_per_output_token, threshold: 1s}
      - {name: first, indicator: time_to_first_token, threshold: 1h}
exporters:
  token_sli:
    objectives: [{slo: each, objective: 0.99}, {slo: first, objective: 0.99}, {slo: all, objective: 0.99}]
    storage: file_storage
  file:
    path: ${env:SPANS_FILE}
    append: true
    flush_interval: 50ms
service:
  extensions: [file_storage]
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli, file]}
  telemetry:
    metrics: {level: none}
`

// delivered extends that: a span has arrived before the end of its stream is acknowledged.
const delivered = `
exporters:
  otlp_http: {endpoint: "${env:BACKEND}", sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
service:
  pipelines:
    traces: {exporters: [token_sli, otlp_http]}
`

// startStored starts a Collector with open streams in a storage.
func startStored(t *testing.T, more ...string) *collector.Collector {
	t.Helper()
	collector.Setenv(t, "STORAGE_DIRECTORY", t.TempDir())
	collector.Setenv(t, "SPANS_FILE", filepath.Join(t.TempDir(), "spans.jsonl"))
	c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "config.yaml", storedStreams), more...)
	c.WaitForListener(t, c.HTTP)
	return c
}

// restored waits until the Collector has started for the nth time, and returns how many
// streams it restored then.
func restored(t *testing.T, c *collector.Collector, nth int) (streams string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Count(c.Output(t), "Everything is ready") >= nth
	}, collector.Patience, 20*time.Millisecond, "the Collector does not start again")
	starts := strings.Split(c.Output(t), "restored open streams from the storage")
	require.Len(t, starts, nth+1, "lines about restored streams")
	_, after, _ := strings.Cut(starts[nth], `"streams": `)
	streams, _, _ = strings.Cut(after, ",")
	return streams
}

// The database of file_storage would list four billion pages, in gigabytes of memory.
func TestStart_EndsIfAPageOfTheStorageHasADamagedLength(t *testing.T) {
	folder := t.TempDir()
	collector.Setenv(t, "STORAGE_DIRECTORY", folder)
	collector.Setenv(t, "SPANS_FILE", filepath.Join(t.TempDir(), "spans.jsonl"))
	config := collector.WriteFile(t, t.TempDir(), "config.yaml", storedStreams)
	collector.Start(t, config).Stop(t)
	for _, owner := range []string{"receiver_token_stream_", "exporter_token_sli_"} {
		path := filepath.Join(folder, owner)
		intact, err := os.ReadFile(path)
		require.NoError(t, err)
		const pageSize, length = 16 + 8, 12 // places in the first header page, and in the header of any page
		damaged := slices.Clone(intact)
		size := int(binary.LittleEndian.Uint32(damaged[pageSize:]))
		for page := 2 * size; page < len(damaged); page += size { // after both header pages
			binary.LittleEndian.PutUint32(damaged[page+length:], math.MaxUint32)
		}
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		c := collector.StartProcess(t, collector.Built(t, "otelcol-tokenpulse"), "--config", config)
		select {
		case <-c.Exited:
		case <-time.After(2 * collector.Patience):
			t.Fatal("the Collector hangs")
		}
		require.Equal(t, 1, c.Command.ProcessState.ExitCode())
		require.Contains(t, c.Output(t), "within 256 MiB of memory there is no answer; its file is probably damaged, so move it away and start again")
		require.NoError(t, os.WriteFile(path, intact, 0o600))
	}
}

// A reload does not touch open streams: with the events that follow they are complete
// requests, and no SLO is breached.
func TestReload_OpenStreamsGoOnWithStorage(t *testing.T) {
	t.Parallel()
	c := startStored(t)
	const streams, before, after = 100, 5, 7
	t0 := time.Now().Add(-time.Minute)
	gap := func(stream, chunk int) time.Duration {
		return time.Duration(stream*1000+chunk*chunk*100) * time.Microsecond
	}
	// Half of the streams are in prefill: their first chunk comes after the reload.
	inPrefill := func(stream int) bool { return stream%2 == 0 }
	at := make([][]time.Time, streams) // of each chunk
	send := func(first, last int, chunks func(stream int) bool, around func(stream int) (string, string)) {
		var lines strings.Builder
		for s := range streams {
			start, end := around(s)
			lines.WriteString(start)
			for n := first; n < last && chunks(s); n++ {
				next := t0.Add(time.Second)
				if len(at[s]) > 0 {
					next = at[s][len(at[s])-1].Add(gap(s, n))
				}
				at[s] = append(at[s], next)
				lines.WriteString(tokenevents.Line("chunk", fmt.Sprint("s", s), next, "") + "\n")
			}
			lines.WriteString(end)
		}
		rejected, err := tokenevents.PostLines(c.HTTP, lines.String())
		require.NoError(t, err)
		require.Zero(t, rejected)
	}
	send(0, before, func(s int) bool { return !inPrefill(s) }, func(s int) (string, string) {
		return tokenevents.Line("start", fmt.Sprint("s", s), t0, `,"resource":{"service.name":"chat"},"attributes":{"gen_ai.request.model":"small"}`) + "\n", ""
	})
	for reload := range 2 {
		c.Signal(syscall.SIGHUP)
		require.Equal(t, strconv.Itoa(streams), restored(t, c, reload+2))
	}
	verdicts := func() map[string]float64 {
		counts := map[string]float64{}
		for _, metric := range exposition.Scrape(t, c)["tokenpulse_slo_requests_total"].GetMetric() {
			counts[exposition.Label(metric, "slo")+" "+exposition.Label(metric, "verdict")] += metric.GetCounter().GetValue()
		}
		return counts
	}
	require.Equal(t, []string{"tokenpulse_streams_open"}, slices.Collect(maps.Keys(exposition.Scrape(t, c))), "no request was judged")
	send(before, before+after, func(int) bool { return true }, func(s int) (string, string) {
		return "", tokenevents.Line("end", fmt.Sprint("s", s), t0.Add(time.Minute), "") + "\n"
	})
	judged := verdicts()
	for _, slo := range []string{"each", "first", "all"} {
		require.Equal(t, map[string]float64{"good": streams, "bad": 0, "not_eligible": 0},
			map[string]float64{"good": judged[slo+" good"], "bad": judged[slo+" bad"], "not_eligible": judged[slo+" not_eligible"]}, slo)
	}
	for _, metric := range exposition.Scrape(t, c)["tokenpulse_slo_error_budget_remaining"].GetMetric() {
		require.InDelta(t, 1, metric.GetGauge().GetValue(), 0, "the budget of %s", exposition.Label(metric, "slo"))
	}
	c.Stop(t)

	spans := otlpfile.ReadSpans(t, collector.Getenv(t, "SPANS_FILE"))
	require.Len(t, spans, streams)
	got, want := map[int][]float64{}, map[int][]float64{} // time per output token, by number of chunks
	for _, span := range spans {
		attributes := span.Attributes()
		require.Equal(t, "success", otlpfile.Text(t, attributes, "tokenpulse.outcome"))
		require.Equal(t, "small", otlpfile.Text(t, attributes, "gen_ai.request.model"))
		_, cut := attributes.Get("tokenpulse.cut")
		require.False(t, cut)
		count, _ := attributes.Get("tokenpulse.chunk.count")
		perToken, _ := attributes.Get("tokenpulse.time_per_output_token")
		got[int(count.Int())] = append(got[int(count.Int())], perToken.Double())
	}
	for s := range streams {
		// Times after the first chunk are whole microseconds of Unix time.
		first, last := at[s][0], at[s][len(at[s])-1].Truncate(time.Microsecond)
		want[len(at[s])] = append(want[len(at[s])], last.Sub(first).Seconds()/float64(len(at[s])-1))
	}
	for chunks := range want {
		slices.Sort(want[chunks])
		slices.Sort(got[chunks])
		const nanosecond = 1.001e-9 // attributes are rounded to it
		require.InDeltaSlice(t, want[chunks], got[chunks], nanosecond, "streams of %d chunks", chunks)
	}
}

// storedStream is a stream of one sender.
type storedStream struct {
	id       string
	chunks   int  // acknowledged
	endSent  bool // before the last death
	endTwice bool // the first one was not acknowledged
	rejected bool // an event before the end
}

// Whenever the process dies, all that was acknowledged is in exactly one span.
func TestKilledCollector_KeepsEveryAcknowledgedEventOfOpenStreams(t *testing.T) {
	t.Parallel()
	backend := tracebackend.Start(t)
	collector.Setenv(t, "BACKEND", backend.Server.URL)
	c := startStored(t, "--config", collector.WriteFile(t, t.TempDir(), "delivered.yaml", delivered))
	t0 := time.Now().Add(-time.Minute)
	var stopping atomic.Bool
	var acknowledged atomic.Int64
	var senders sync.WaitGroup
	all := make([][]*storedStream, 6)
	address := c.HTTP
	// deliver sends a line until it is acknowledged. Chunks are numbered, so that a repeat of
	// one that was stored but not acknowledged is recognised.
	deliver := func(line string) (rejected int, again bool) {
		for deadline := time.Now().Add(2 * collector.Patience); ; {
			rejected, err := tokenevents.PostLines(address, line)
			if err == nil {
				acknowledged.Add(1)
				return rejected, again
			}
			if time.Now().After(deadline) {
				assert.NoError(t, err, line)
				return 0, again
			}
			again = true
			time.Sleep(5 * time.Millisecond)
		}
	}
	for sender := range all {
		senders.Go(func() {
			r := rand.New(rand.NewPCG(uint64(sender), 5))
			var open []*storedStream
			for n := 0; !stopping.Load(); n++ {
				if len(open) < 20 {
					s := &storedStream{id: fmt.Sprintf("s%d-%d", sender, n)}
					rejected, _ := deliver(tokenevents.Line("start", s.id, t0, fmt.Sprintf(`,"attributes":{"stream":%q}`, s.id)) + "\n")
					s.rejected = rejected > 0
					open, all[sender] = append(open, s), append(all[sender], s)
				}
				at := r.IntN(len(open))
				s := open[at]
				if r.IntN(40) == 0 {
					s.endSent = true
					_, s.endTwice = deliver(tokenevents.Line("end", s.id, t0.Add(time.Minute), "") + "\n")
					open = slices.Delete(open, at, at+1)
					continue
				}
				line := tokenevents.Line("chunk", s.id, t0.Add(time.Duration(s.chunks+1)*10*time.Millisecond), fmt.Sprintf(`,"seq":%d,"tokens":2`, s.chunks)) + "\n"
				rejected, _ := deliver(line)
				s.rejected = s.rejected || rejected > 0
				s.chunks++
			}
		})
	}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for range 5 {
		// One event in 40 is an end, and another stream follows it. With 120 open streams and
		// 5 * 800 events, at least 150 streams begin in all but 1 of 10^11 runs.
		enough := acknowledged.Load() + 800 + r.Int64N(400)
		require.Eventually(t, func() bool { return acknowledged.Load() >= enough }, 2*collector.Patience, time.Millisecond)
		c.Kill(t)
		c = c.Again(t)
		t.Logf("restored %s streams", restored(t, c, 1))
	}
	stopping.Store(true)
	senders.Wait()
	for _, ofSender := range all {
		for _, s := range ofSender {
			if !s.endSent {
				rejected, _ := deliver(tokenevents.Line("end", s.id, t0.Add(time.Minute), "") + "\n")
				require.Zero(t, rejected, s.id)
			}
		}
	}
	c.Stop(t)

	emitted := map[string]int{}
	streams := map[string]*storedStream{}
	for _, s := range slices.Concat(all...) {
		require.False(t, s.rejected, "events of %s were rejected", s.id)
		streams[s.id] = s
	}
	backend.Mu.Lock()
	defer backend.Mu.Unlock()
	for _, spans := range backend.Taken {
		for _, span := range spans.All() {
			s := streams[otlpfile.Text(t, span.Attributes(), "stream")]
			emitted[s.id]++
			outcome := "success"
			if s.chunks == 0 { // ended without a token
				outcome = "error"
			}
			require.Equal(t, outcome, otlpfile.Text(t, span.Attributes(), "tokenpulse.outcome"), s.id)
			if s.chunks < 2 {
				continue
			}
			count, _ := span.Attributes().Get("tokenpulse.chunk.count")
			require.Equal(t, int64(s.chunks), count.Int(), "chunks of %s", s.id)
			perToken, _ := span.Attributes().Get("tokenpulse.time_per_output_token")
			require.InDelta(t, 0.010*float64(s.chunks-1)/float64(2*s.chunks-1), perToken.Double(), 1e-6, "every chunk once, two tokens each")
		}
	}
	twice, most := 0, 0
	for _, s := range streams {
		most = max(most, s.chunks)
		switch n := emitted[s.id]; {
		case n == 1:
		case n == 2 && s.endTwice: // the process died before the end was acknowledged
			twice++
		default:
			require.Fail(t, "a stream was not emitted exactly once", "%s: %d times", s.id, n)
		}
	}
	t.Logf("%d streams of up to %d chunks; %d emitted twice", len(streams), most, twice)
	require.Greater(t, len(streams), 150)
	require.Greater(t, most, 5)
	require.LessOrEqual(t, twice, 5*len(all))
}
