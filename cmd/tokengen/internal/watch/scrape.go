// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch scrapes the latencies that the token_sli exporter publishes and
// formats them as a table.
package watch

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

const maxPageBytes = 256 << 20

// indicators are the groups of columns, with the metric of each group.
var indicators = []struct{ title, metric string }{
	{"TTFT", prometheusName(names.TimeToFirstToken+names.SuffixPercentile, "s", otlptranslator.MetricTypeGauge)},
	{"ITL", prometheusName(names.InterTokenLatency+names.SuffixPercentile, "s", otlptranslator.MetricTypeGauge)},
	{"TPOT", prometheusName(names.TimePerOutputToken+names.SuffixPercentile, "s", otlptranslator.MetricTypeGauge)},
}

var requestsMetric = prometheusName(names.Requests, "{request}", otlptranslator.MetricTypeMonotonicCounter)

// percentiles are the columns of each indicator, as values of the label.
var percentiles = []string{"50", "95", "99"}

func prometheusName(name, unit string, kind otlptranslator.MetricType) string {
	namer := otlptranslator.MetricNamer{WithMetricSuffixes: true}
	translated, err := namer.Build(otlptranslator.Metric{Name: name, Unit: unit, Type: kind})
	if err != nil { // cannot happen: the names are constants
		panic(err)
	}
	return translated
}

func prometheusLabel(name string) string { return strings.ReplaceAll(name, ".", "_") }

// Row holds one series: a model of a service, seen from one vantage.
type Row struct {
	Model, Service, Vantage string
	// Requests is the count since the Collector started, by outcome.
	Requests map[string]float64
	// Seconds holds the known latencies of successful requests in the window.
	Seconds map[Statistic]float64
}

// Statistic is a percentile of an indicator, such as "95" of "TTFT".
type Statistic struct{ Indicator, Percentile string }

// Scrape reads the rows of one window, such as "1m", from a scrape endpoint.
func Scrape(ctx context.Context, client *http.Client, url, window string) ([]Row, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/plain; version=0.0.4")
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w; check --metrics", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s; check --metrics", url, printable(response.Status))
	}
	return parse(io.LimitReader(response.Body, maxPageBytes), window)
}

// parse reads the rows of one window from metrics in the Prometheus text format.
func parse(page io.Reader, window string) ([]Row, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return nil, fmt.Errorf("not Prometheus metrics: %s; check --metrics", printable(err.Error()))
	}
	byLabels := rows{}
	for _, m := range families[requestsMetric].GetMetric() {
		labels := labelsOf(m)
		byLabels.row(labels).Requests[labels[names.LabelOutcome]] += m.GetCounter().GetValue()
	}
	for _, indicator := range indicators {
		for _, m := range families[indicator.metric].GetMetric() {
			labels := labelsOf(m)
			if labels[names.LabelWindow] != window || labels[names.LabelOutcome] != names.OutcomeSuccess {
				continue
			}
			byLabels.row(labels).Seconds[Statistic{indicator.title, labels[names.LabelPercentile]}] = m.GetGauge().GetValue()
		}
	}
	return byLabels.sorted(), nil
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range m.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// rows are keyed by all labels that identify a series, so that series that differ
// only in labels outside the table stay apart.
type rows map[string]*Row

func (r rows) row(labels map[string]string) *Row {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch name {
		case names.LabelOutcome, names.LabelPercentile, names.LabelWindow:
		default:
			fmt.Fprintf(&key, "%s=%q,", name, labels[name])
		}
	}
	row, ok := r[key.String()]
	if !ok {
		row = &Row{
			Model:    labels[prometheusLabel(names.GenAIRequestModel)],
			Service:  labels[prometheusLabel(names.ServiceName)],
			Vantage:  labels[names.LabelVantage],
			Requests: map[string]float64{},
			Seconds:  map[Statistic]float64{},
		}
		if labels[prometheusLabel(names.LabelOverflow)] == "true" {
			row.Model = "(all others)"
		}
		r[key.String()] = row
	}
	return row
}

// sorted returns the rows in the order of their visible labels, then of all labels.
func (r rows) sorted() []Row {
	keys := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		x, y := r[a], r[b]
		return slices.Compare([]string{x.Model, x.Service, x.Vantage, a}, []string{y.Model, y.Service, y.Vantage, b})
	})
	out := make([]Row, 0, len(keys))
	for _, key := range keys {
		out = append(out, *r[key])
	}
	return out
}
