// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func table(t *testing.T, rows []Row) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Write(&out, rows))
	return out.String()
}

// testdata/metrics.txt is written by hand. It has two models, one of them seen from two
// vantages, requests that failed, latencies of another outcome and of another window,
// an overflow series, and a quantile that is NaN.
func TestScrape_FormatsTable(t *testing.T) {
	page, err := os.ReadFile("testdata/metrics.txt")
	require.NoError(t, err)
	expected, err := os.ReadFile("testdata/table.txt")
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }))
	defer server.Close()
	rows, err := Scrape(t.Context(), server.Client(), server.URL, "1m")
	require.NoError(t, err)
	require.Equal(t, string(expected), table(t, rows))
}

func TestParse_SelectsWindow(t *testing.T) {
	page, err := os.Open("testdata/metrics.txt")
	require.NoError(t, err)
	defer page.Close()
	rows, err := parse(page, "5m")
	require.NoError(t, err)
	require.Contains(t, table(t, rows), "77s")
	require.NotContains(t, table(t, rows), "312ms")
}

func TestWrite_WithoutRequests(t *testing.T) {
	rows, err := parse(strings.NewReader("# HELP up x\n# TYPE up gauge\nup 1\n"), "1m")
	require.NoError(t, err)
	require.Equal(t, "waiting for the first request\n", table(t, rows))
}

func TestScrape_RejectsOtherPages(t *testing.T) {
	_, err := parse(strings.NewReader("<html>\n"), "1m")
	require.ErrorContains(t, err, "not Prometheus metrics")
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err = Scrape(t.Context(), server.Client(), server.URL, "1m")
	require.ErrorContains(t, err, "answered 404 Not Found")
}

func TestDuration_HasThreeDigits(t *testing.T) {
	tests := map[float64]string{
		0: "0µs", 4.25e-7: "0.425µs", 0.0001234: "123µs", 0.0009994: "999µs", 0.0009996: "1ms", 0.00312: "3.12ms",
		0.0215: "21.5ms", 0.0999: "99.9ms", 0.3124: "312ms", 0.9994: "999ms", 0.9996: "1s", 1.234: "1.23s", 99.96: "100s", 12_345: "12345s",
	}
	for seconds, expected := range tests {
		require.Equal(t, expected, duration(seconds, true))
	}
	require.Equal(t, "-", duration(0, false))
}
