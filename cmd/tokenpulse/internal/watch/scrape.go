// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch scrapes the histograms that the token_sli exporter publishes and
// formats what was added to them in a window as a table.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/otlptranslator"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

const maxPageBytes = 256 << 20

// indicators are the groups of columns, with the histogram of each group.
var indicators = [...]struct{ title, metric string }{
	{"TTFT", prometheusName(numbers.TimeToFirstToken.Row().Metric.Name, "s", otlptranslator.MetricTypeHistogram)},
	{"ITL", prometheusName(numbers.InterTokenLatency.Row().Metric.Name, "s", otlptranslator.MetricTypeHistogram)},
	{"TPOT", prometheusName(numbers.TimePerOutputToken.Row().Metric.Name, "s", otlptranslator.MetricTypeHistogram)},
}

var requestsMetric = prometheusName(names.Requests, "{request}", otlptranslator.MetricTypeMonotonicCounter)

func prometheusName(name, unit string, kind otlptranslator.MetricType) string {
	namer := otlptranslator.MetricNamer{WithMetricSuffixes: true}
	translated, err := namer.Build(otlptranslator.Metric{Name: name, Unit: unit, Type: kind})
	if err != nil { // cannot happen: the names are constants
		panic(err)
	}
	return translated
}

func prometheusLabel(name string) string { return strings.ReplaceAll(name, ".", "_") }

// Totals holds the rows of one scrape: their values since the Collector started. The keys are
// all labels that identify a series, so that series that differ only in labels outside the table
// stay apart.
type Totals map[string]*Row

// origin changes when a histogram begins again at 0.
type origin struct {
	created int64 // Unix nanoseconds
	schema  int32
}

// Scrape reads the series of a scrape endpoint.
func Scrape(ctx context.Context, client *http.Client, url string) (Totals, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	protobuf := expfmt.NewFormat(expfmt.TypeProtoDelim)
	request.Header.Set("Accept", string(protobuf)) // only protobuf has native histograms
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w; check --metrics", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s; check --metrics", url, terminal.Printable(response.Status))
	}
	if expfmt.ResponseFormat(response.Header).FormatType() != expfmt.TypeProtoDelim {
		return nil, fmt.Errorf("%s does not answer in Prometheus' protobuf format; check that --metrics is a token_sli exporter", url)
	}
	return parse(expfmt.NewDecoder(io.LimitReader(response.Body, maxPageBytes), protobuf))
}

func parse(page expfmt.Decoder) (Totals, error) {
	totals := Totals{}
	for {
		var family dto.MetricFamily
		err := page.Decode(&family)
		if errors.Is(err, io.EOF) {
			return totals, nil
		}
		if err != nil {
			return nil, fmt.Errorf("not Prometheus metrics: %s; check --metrics", terminal.Printable(err.Error()))
		}
		totals.read(&family)
	}
}

// read adds a metric of the table. Other metrics are ignored.
func (t Totals) read(family *dto.MetricFamily) {
	if family.GetName() == requestsMetric {
		for _, m := range family.GetMetric() {
			labels := labelsOf(m)
			t.row(labels).Requests[labels[names.LabelOutcome]] += m.GetCounter().GetValue()
		}
	}
	for i, indicator := range indicators {
		if family.GetName() != indicator.metric {
			continue
		}
		for _, m := range family.GetMetric() {
			if labels := labelsOf(m); labels[names.LabelOutcome] == names.OutcomeSuccess {
				row := t.row(labels)
				row.origins[i] = addNative(&row.Latencies[i], m.GetHistogram())
			}
		}
	}
}

// addNative adds the native buckets of a histogram, each at its middle.
func addNative(to *sketch.Sketch, h *dto.Histogram) origin {
	to.Add(0, h.GetZeroCount())
	index, count, deltas := int32(0), int64(0), h.GetPositiveDelta()
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		length := min(int(span.GetLength()), len(deltas))
		for _, delta := range deltas[:length] {
			count += delta
			to.Add(math.Exp2((float64(index)-0.5)/math.Exp2(float64(h.GetSchema()))), uint64(max(count, 0)))
			index++
		}
		deltas = deltas[length:]
	}
	return origin{h.GetCreatedTimestamp().AsTime().UnixNano(), h.GetSchema()}
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range m.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

func (t Totals) row(labels map[string]string) *Row {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name != names.LabelOutcome {
			fmt.Fprintf(&key, "%s=%q,", name, labels[name])
		}
	}
	row, ok := t[key.String()]
	if !ok {
		row = &Row{
			Model:    labels[prometheusLabel(names.GenAIRequestModel)],
			Service:  labels[prometheusLabel(names.ServiceName)],
			Vantage:  labels[names.LabelVantage],
			Requests: map[string]float64{},
		}
		if labels[prometheusLabel(names.LabelOverflow)] == "true" {
			row.Model = "(all others)"
		}
		t[key.String()] = row
	}
	return row
}
