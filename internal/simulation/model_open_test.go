// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// openStreams returns what the gauge of open streams should be: the numbers that are not 0. During a
// shutdown there are none.
func (w *world) openStreams() map[string]int {
	want := map[string]int{}
	for _, c := range w.open {
		if !c.expires(&w.profile).After(time.Now()) || !w.stopping.IsZero() {
			continue
		}
		phase, silent := "first_token", "+Inf"
		if len(c.chunks) > 0 {
			phase = "decode"
		}
		for _, band := range []string{"60s", "15s", "5s", "1s"} {
			if bound, _ := time.ParseDuration(band); time.Since(c.lastToken) <= bound {
				silent = band
			}
		}
		want[w.keyOfOpen(c.service, c.model, c.vantage, phase, silent)]++
	}
	return want
}

// keyOfOpen leaves the series out if there may be too few: which one overflows depends on the order in
// which the receiver visits its streams.
func (w *world) keyOfOpen(service, model, vantage, phase, silent string) string {
	if w.maxSeries <= 3 {
		service, model, vantage = "", "", ""
	}
	return fmt.Sprint(service, " ", model, " ", vantage, " ", phase, " ", silent)
}

// checkOpen compares the gauge of open streams that the receiver sends with the model.
func (w *world) checkOpen(metrics pmetric.Metrics) {
	if w.path == viaSpans || metrics.ResourceMetrics().Len() == 0 {
		return
	}
	got := map[string]int{}
	for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if m.Name() != names.StreamsOpen {
			continue
		}
		for _, p := range m.Gauge().DataPoints().All() {
			a := p.Attributes()
			key := w.keyOfOpen(attribute(a, names.ServiceName), attribute(a, names.GenAIRequestModel), attribute(a, "vantage"), attribute(a, "phase"), attribute(a, "silent"))
			got[key] += int(p.DoubleValue())
		}
	}
	maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
	if want := w.openStreams(); !maps.Equal(got, want) {
		w.failf("open streams are %v, want %v", sortedPairs(got), sortedPairs(want))
	}
}

func sortedPairs(of map[string]int) (pairs []string) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		pairs = append(pairs, fmt.Sprint(key, ": ", of[key]))
	}
	return pairs
}
