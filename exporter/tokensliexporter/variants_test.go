// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/exposition"
)

// scrapeOf returns the response to a scrape, and its body as it came.
func scrapeOf(client *http.Client, url string, headers map[string]string) (*http.Response, []byte, error) {
	r, err := http.NewRequest(http.MethodGet, url+metricsPath, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, body, err
}

// uncompressed is a client that does not ask for gzip by itself.
func uncompressed(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Scrapes at once get what each of them asks for: format, compression, and young samples at 0 or not.
func TestScrape_SharesNothingWithOtherVariants(t *testing.T) {
	h := start(t, func(c *Config) { c.MaxSharePerClient = 1 })
	span := judgedSpan("success", "", "a")
	h.send(t, span)
	traces := batch(span)
	traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetTraceID([16]byte{1}) // for an exemplar
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), traces))
	client := uncompressed(t)
	var group sync.WaitGroup
	for i := range 60 {
		accept, zipped, scraper := []string{text, openMetrics, protobuf}[i%3], i/3%2 == 0, i/6%2 == 0
		group.Go(func() {
			headers := map[string]string{"Accept": accept}
			if zipped {
				headers["Accept-Encoding"] = "gzip"
			}
			if scraper {
				headers[scraperHeader] = "10"
			}
			response, body, err := scrapeOf(client, h.url, headers)
			if err != nil || response.StatusCode != http.StatusOK || (response.Header.Get("Content-Encoding") == "gzip") != zipped {
				t.Errorf("%v: %v, %v", headers, response, err)
				return
			}
			if zipped {
				reader, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				if body, err = io.ReadAll(reader); err != nil {
					t.Error(err)
					return
				}
			}
			format := expfmt.ResponseFormat(response.Header)
			if got := response.Header.Get("Content-Type"); !strings.HasPrefix(got, accept) {
				t.Errorf("%v: %s", headers, got)
				return
			}
			requests := "2"
			if scraper {
				requests = "0"
			}
			if accept != protobuf {
				lines := string(body)
				if !strings.Contains(lines, `tokenpulse_requests_total{gen_ai_request_model="m",outcome="success",service_name="chat",vantage="server"} `+requests) {
					t.Errorf("%v: %s", headers, lines)
				}
				if open := accept == openMetrics; strings.HasSuffix(lines, "# EOF\n") != open || strings.Contains(lines, "_created{") != open ||
					strings.Contains(lines, `# {span_id=`) != (open && !scraper) {
					t.Errorf("%v: %s", headers, lines)
				}
				return
			}
			for _, family := range decoded(t, bytes.NewReader(body), format) {
				switch family.GetName() {
				case "tokenpulse_requests_total":
					if fmt.Sprint(family.Metric[0].GetCounter().GetValue()) != requests || family.Metric[0].GetCounter().CreatedTimestamp == nil {
						t.Errorf("%v: %v", headers, family)
					}
				case ttft:
					if native := family.Metric[0].GetHistogram(); len(native.PositiveDelta) > 0 == scraper || native.Schema == nil {
						t.Errorf("%v: %v", headers, family)
					}
				}
			}
		})
	}
	group.Wait()
}

func TestFormat_AsTheScraperAccepts(t *testing.T) {
	for accept, want := range map[string]string{
		"":    "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
		"*/*": "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
		openMetrics + ";escaping=allow-utf-8;q=0.9,text/plain;q=0.1": "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8",
		protobuf: "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=underscores",
		"application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=compact-text": "text/plain; version=0.0.4; charset=utf-8",
	} {
		require.Equal(t, want, string(formatOf(http.Header{"Accept": {accept}})), accept)
	}
}

func TestAcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "identity": false, "br, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0, identity": false, "*": true,
		"zstd,gzip ;q=1": true, "x-gzipped": false, "gzip;q=x": false,
	} {
		require.Equal(t, want, acceptsGzip(http.Header{"Accept-Encoding": {header}}), header)
	}
	require.True(t, acceptsGzip(http.Header{"Accept-Encoding": {"br", "gzip"}}), "two headers")
}

// A scrape waits for four fifths of its time, so that one is left to send the response.
func TestWaitTime_IsWithinTheTimeoutOfTheScraper(t *testing.T) {
	e := &tokenSLI{scrapeTime: 10 * time.Second}
	for timeout, want := range map[string]time.Duration{
		"": 8 * time.Second, "5": 4 * time.Second, "0.5": 400 * time.Millisecond, "60": 8 * time.Second, "1e300": 8 * time.Second,
		"0": 8 * time.Second, "-1": 8 * time.Second, "NaN": 8 * time.Second, "soon": 8 * time.Second,
	} {
		require.Equal(t, want, e.waitTime(http.Header{scraperHeader: {timeout}}), timeout)
	}
}

// A rendering that takes too long gives each scrape a 503 in its time. It ends, and later scrapes get theirs.
func TestScrape_503WithinTheTimeout(t *testing.T) {
	e, _ := unstarted(t, func(c *Config) { c.MaxSharePerClient = 1 })
	render := e.renderings.render
	var slow, running atomic.Bool
	slow.Store(true)
	e.renderings.render = func(v variant, unused func() bool) (*exposition.Body, error) {
		running.Store(true)
		defer running.Store(false)
		for slow.Load() && !unused() {
			time.Sleep(time.Millisecond)
		}
		return render(v, unused)
	}
	server := httptest.NewServer(e.handler())
	defer server.Close()
	client := uncompressed(t)
	var group sync.WaitGroup
	for range 26 {
		group.Go(func() {
			response, body, err := scrapeOf(client, server.URL, map[string]string{scraperHeader: "0.5"})
			if err != nil || response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "not ready in time") {
				t.Errorf("%v %s %v", response, body, err)
			}
		})
	}
	group.Wait()
	require.Eventually(t, func() bool { return !running.Load() }, time.Minute, time.Millisecond, "nobody waits for the rendering")
	slow.Store(false)
	response, _, err := scrapeOf(client, server.URL, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, e.Shutdown(t.Context()))
	e.renderings.close()
}

// Large responses are sent one after the other, so that those that end in time are whole. While a slow client
// holds the place, others get a 503. Compressed ones are small.
func TestScrape_LargeResponsesTakeTurns(t *testing.T) {
	e, _ := unstarted(t, nil)
	e.scrapeTime = time.Minute
	kind := dto.MetricType_GAUGE
	e.renderings.render = func(v variant, _ func() bool) (*exposition.Body, error) {
		b := exposition.NewBuilder(v.Format)
		for i := range 66 {
			b.Add(&dto.MetricFamily{Name: proto.String(fmt.Sprint("m", i)), Type: &kind}, &dto.Metric{
				Gauge: &dto.Gauge{Value: proto.Float64(1)}, Label: []*dto.LabelPair{{Name: proto.String("l"), Value: proto.String(strings.Repeat("x", 1<<20))}},
			})
		}
		return b.Body()
	}
	server := httptest.NewServer(e.handler())
	defer server.Close()
	client := uncompressed(t)
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			response, body, err := scrapeOf(client, server.URL, nil)
			if err != nil || response.StatusCode != http.StatusOK || len(body) < 66<<20 {
				t.Errorf("%v, %d bytes, %v", response, len(body), err)
			}
		})
	}
	group.Wait()

	slowReader(t, server.Listener.Addr().String())
	response, body, err := scrapeOf(client, server.URL, map[string]string{scraperHeader: "0.5"})
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Contains(t, string(body), "Accept-Encoding: gzip")
	response, _, err = scrapeOf(client, server.URL, map[string]string{"Accept-Encoding": "gzip"})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	server.CloseClientConnections()
	e.renderings.close()
}

// Scrapes at once, and of all variants, take less memory than the series themselves.
func TestMemory_ScrapesAtOnceTakeLessThanTheSeries(t *testing.T) {
	e := newServed(t, 1000, func(c *Config) {
		c.MaxSharePerClient = 1
		c.Shared.Series.MaxSeries = 4000 // one service opens half of them
	})
	e.scrapeTime = time.Minute
	server := httptest.NewServer(e.handler())
	defer server.Close()
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // little garbage
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	idle, peak := heap(), uint64(0)
	done := make(chan struct{})
	var watching, group sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
				peak = max(peak, heap())
			}
		}
	})
	client := uncompressed(t)
	for i := range 26 {
		group.Go(func() {
			r, _ := http.NewRequest(http.MethodGet, server.URL+metricsPath, http.NoBody)
			r.Header.Set("Accept", []string{text, openMetrics, protobuf}[i%3])
			r.Header.Set("Accept-Encoding", []string{"gzip", "identity"}[i%2])
			response, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if n, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK || n < 100_000 {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
	group.Wait()
	close(done)
	watching.Wait()
	t.Logf("%d MiB idle, at most %d MiB", idle>>20, peak>>20)
	require.Less(t, peak, 2*idle)
	require.NoError(t, e.Shutdown(t.Context()))
}
