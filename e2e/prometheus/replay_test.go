// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// prometheusSetup is a Prometheus with the settings that decide what it stores of a histogram.
type prometheusSetup struct {
	program, flags, scrapeSettings string
	native                         bool
}

// shippedFlags returns the feature flags that examples/prometheus prints.
func shippedFlags(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(prometheusExample(t, "prometheus.yaml"))
	require.NoError(t, err)
	flags := regexp.MustCompile(`prometheus --config\.file=\S+ --enable-feature=(\S+)`).FindSubmatch(content)
	require.NotNil(t, flags)
	return string(flags[1])
}

// installedSetups returns the installed Prometheus with the shipped flags, and without the one
// for native histograms.
func installedSetups(t *testing.T) map[string]prometheusSetup {
	t.Helper()
	program, flags := testenv.Program(t, "prometheus"), shippedFlags(t)
	others := strings.ReplaceAll(flags, "native-histograms,", "")
	require.NotEqual(t, flags, others)
	return map[string]prometheusSetup{
		"native":  {program: program, flags: flags, native: true},
		"classic": {program: program, flags: others},
	}
}

// recording holds scrapes of a Collector, with the times at which a Prometheus would have made
// them. So a real Prometheus has the Collector's own series over hours.
type recording struct {
	queries  string // the recording has the metrics that these name
	families map[string]*dto.MetricFamily
	last     time.Time
}

func newRecording(queries ...string) *recording {
	return &recording{queries: strings.Join(queries, "\n"), families: map[string]*dto.MetricFamily{}}
}

// add adds a scrape.
func (r *recording) add(scraped map[string]*dto.MetricFamily, at time.Time) {
	for name, family := range scraped {
		if !strings.Contains(r.queries, name) {
			continue
		}
		for _, metric := range family.GetMetric() {
			metric.TimestampMs = new(at.UnixMilli())
		}
		if before := r.families[name]; before != nil {
			before.Metric = append(before.Metric, family.GetMetric()...)
		} else {
			r.families[name] = family
		}
	}
	r.last = at
}

// replay runs a Prometheus that gets the whole recording with its first scrape.
func (r *recording) replay(t *testing.T, s prometheusSetup) *promserver.Server {
	t.Helper()
	var scrapes atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		format := expfmt.NegotiateAccept(request.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
		w.Header().Set("Content-Type", string(format))
		encoder := expfmt.NewEncoder(w, format)
		if scrapes.Add(1) == 1 {
			// The first sample sets the oldest time that an empty Prometheus takes.
			oldest := func(a, b *dto.MetricFamily) int {
				return cmp.Compare(a.Metric[0].GetTimestampMs(), b.Metric[0].GetTimestampMs())
			}
			for _, family := range slices.SortedFunc(maps.Values(r.families), oldest) {
				_ = encoder.Encode(family)
			}
		}
		if end, ok := encoder.(expfmt.Closer); ok {
			_ = end.Close()
		}
	}))
	t.Cleanup(target.Close)
	p := promserver.Run(t, s.program, fmt.Sprintf(`
scrape_configs:
  - {job_name: tokenpulse, scrape_interval: 5s, scrape_timeout: 5s, static_configs: [{targets: [%q]}], %s}
`, target.Listener.Addr(), s.scrapeSettings), "--enable-feature", s.flags)
	p.Native = s.native
	p.WaitUntil(t, fmt.Sprintf("tokenpulse_requests_total @ %d", r.last.Unix()))
	return p
}
