// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantile_NearestRank(t *testing.T) {
	require.Equal(t, 2.0, quantile([]float64{4, 1, 3, 2}, 0.5))
	require.Equal(t, 4.0, quantile([]float64{4, 1, 3, 2}, 0.99))
	require.Equal(t, 1.0, quantile([]float64{1}, 0.5))
}

// slowly delays each answer, and each write of it.
type slowly struct {
	http.ResponseWriter
	by time.Duration
}

func (s slowly) Write(p []byte) (int, error) {
	time.Sleep(s.by)
	return s.ResponseWriter.Write(p)
}

func (s slowly) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// A proxy that delays the request and each chunk by a known time must be measured as slow
// as it is, and every chunk must count.
func TestStreamer_MeasuresTheDelayOfAProxy(t *testing.T) {
	const chunks, perChunk, perRequest = 10, 20 * time.Millisecond, 50 * time.Millisecond
	upstream := httptest.NewServer(http.HandlerFunc(answerWithStream))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(perRequest)
		proxy.ServeHTTP(slowly{w, perChunk}, r)
	}))
	defer slow.Close()
	s := &streamer{url: slow.URL + streamPath + "?chunks=10&every=40ms", from: time.Now(), to: time.Now().Add(time.Hour)}
	var sample tapSample
	s.read(t.Context(), &sample)
	require.Len(t, sample.chunk, chunks)
	require.Len(t, sample.first, 1)
	for _, seconds := range sample.chunk {
		require.GreaterOrEqual(t, seconds, perChunk.Seconds())
	}
	require.GreaterOrEqual(t, sample.first[0], (perRequest + perChunk).Seconds())

	s.from = time.Now().Add(time.Hour) // during the warm-up
	s.read(t.Context(), &sample)
	require.Len(t, sample.chunk, chunks)
}

// A proxy that kept a stream until its end would wait for ever: the upstream goes on once the client has read.
func TestReverseProxies_PassChunksAsTheyArrive(t *testing.T) {
	for name, proxy := range map[string]func(*url.URL) http.Handler{
		"plain":          plainReverseProxy,
		"of a Collector": func(upstream *url.URL) http.Handler { return collectorReverseProxy(upstream).Handler },
	} {
		t.Run(name, func(t *testing.T) {
			read := make(chan struct{})
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "first\n")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-read:
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, "second\n")
			}))
			defer upstream.Close()
			target, err := url.Parse(upstream.URL)
			require.NoError(t, err)
			server := httptest.NewServer(proxy(target))
			defer server.Close()
			response, err := http.Get(server.URL) //nolint:noctx // the address of this test
			require.NoError(t, err)
			defer response.Body.Close()
			body := bufio.NewReader(response.Body)
			first, err := body.ReadString('\n')
			require.NoError(t, err)
			close(read)
			second, err := body.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "first\nsecond\n", first+second)
		})
	}
}

// Errors of the template or the page would otherwise show at the end of a full run.
func TestDocumentTap_RewritesOnlyTheCost(t *testing.T) {
	old, err := os.ReadFile("../../receiver/tokentapreceiver/README.md")
	require.NoError(t, err)
	folder := t.TempDir()
	page := filepath.Join(folder, "README.md")
	require.NoError(t, os.WriteFile(page, old, 0o600))
	long := tapMeasured{cpuLoads[0], tapProxies(options{}, cpuLoads[0], "", "")[1:], map[string][]tapResult{}}
	short := tapMeasured{cpuLoads[5], long.proxies, map[string][]tapResult{}}
	turn := tapMeasured{turnLoads[0], tapProxies(options{}, turnLoads[0], "", ""), map[string][]tapResult{}}
	many := tapMeasured{turnLoads[len(turnLoads)-1], turn.proxies, map[string][]tapResult{}}
	for i, p := range turn.proxies {
		long.results[p.name] = []tapResult{{cpuPerChunk: 1}, {cpuPerChunk: 10 * float64(i)}, {cpuPerChunk: 100}}
		short.results[p.name] = []tapResult{{cpuPerChunk: 7}, {cpuPerChunk: 7}, {cpuPerChunk: 7}}
		turn.results[p.name] = []tapResult{{chunk50: 100}, {chunk50: 100 + float64(i)}, {chunk50: 1000}}
		many.results[p.name] = []tapResult{{perStream: 500}, {perStream: 600}, {perStream: 900}}
	}
	var rewritten string
	for range 2 { // what it wrote can be written again
		documentTap(options{document: folder, rounds: 3}, []tapMeasured{long, short}, []tapMeasured{turn, turn, many})
		content, err := os.ReadFile(page)
		require.NoError(t, err)
		rewritten = string(content)
	}
	before, _, _ := strings.Cut(string(old), "<!-- cost:begin -->")
	_, after, _ := strings.Cut(string(old), "<!-- cost:end -->")
	require.True(t, strings.HasPrefix(rewritten, before) && strings.HasSuffix(rewritten, after))
	// The latencies added in the rounds are 0, 5 and 0.
	rows := map[string][][]string{} // by their first cell
	for line := range strings.Lines(strings.TrimPrefix(rewritten, before)) {
		var row []string
		for cell := range strings.SplitSeq(strings.Trim(line, "| \n"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows[row[0]] = append(rows[row[0]], row[1:])
	}
	require.NotContains(t, rows, noProxy)
	require.Equal(t, [][]string{{"50.0", "7.00"}, {"0.00", "0.00", "0.00", "0.00"}, {"0.00", "0.00", "0.00", "0.00"}}, rows[tapPath])
	require.Contains(t, rewritten, "at 10000 streams: 600 KiB with the tap")
	require.Equal(t, []string{"1.00 (1.00 .. 2.50)", "1.00 (1.00 .. 5.00)"}, rows[long.load.String()][0])
}

func TestCheckTap_FailsUnderNineTenthsOfTheRecordedRatio(t *testing.T) {
	file := filepath.Join(t.TempDir(), "measured.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"other": 1}`), 0o600))
	turns, l := 0, checkedLoads[0]
	of := func(cpu float64) func() tapMeasured {
		return func() tapMeasured {
			turns++
			return tapMeasured{results: map[string][]tapResult{collectorProxy: {{cpuPerChunk: 10}}, tapPath: {{cpuPerChunk: cpu}}}}
		}
	}
	require.ErrorContains(t, caught(func() { try(checkTap(file, l, of(10))) }), "make suite-bench-tap")
	writeRatios(file, map[string]float64{l.ratio().String(): 0.9})
	require.Equal(t, map[string]float64{"other": 1, l.ratio().String(): 0.9}, readRatios(file))
	require.NoError(t, checkTap(file, l, of(12.3)), "0.813 of 0.81")
	require.Equal(t, 1, turns)
	require.ErrorContains(t, checkTap(file, l, of(12.5)), "now 0.80, 0.80, 0.80, 0.80 (measured 4 times), before 0.90, limit 0.81: 90% of before")
}
