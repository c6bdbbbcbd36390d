// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/otlptranslator"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// family is a metric family of Prometheus.
type family struct {
	name, help string
	unit       *string // OpenMetrics unit, the suffix of the name
	kind       dto.MetricType
	on         bool // published
}

// newFamily translates a metric by OpenTelemetry's rules for Prometheus.
func newFamily(m numbers.Metric, kind dto.MetricType) (family, error) {
	kinds := map[dto.MetricType]otlptranslator.MetricType{
		dto.MetricType_COUNTER:   otlptranslator.MetricTypeMonotonicCounter,
		dto.MetricType_GAUGE:     otlptranslator.MetricTypeGauge,
		dto.MetricType_HISTOGRAM: otlptranslator.MetricTypeHistogram,
	}
	namer := otlptranslator.MetricNamer{WithMetricSuffixes: true}
	translated, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: kinds[kind]})
	f := family{name: translated, help: m.Description, kind: kind}
	if m.Unit == "s" {
		f.unit = new("seconds")
	}
	return f, err
}

// catalogue holds the index of the family of every metric. Quantities that share a
// family differ by a label.
type catalogue struct {
	families   []family // without duplicates
	histogram  [numbers.Distributions]int
	percentile [numbers.Distributions]int
	counter    [len(series.Counters)]int
	requests   int

	sloRequests, sloObjective, sloBurnRate, sloBudget int
}

func newCatalogue(selection series.Selection) (c *catalogue, err error) {
	c = &catalogue{}
	add := func(m numbers.Metric, kind dto.MetricType) int {
		f, failed := newFamily(m, kind)
		if failed != nil {
			err = failed
		}
		f.on = selection.Has(m.Name)
		for i := range c.families {
			if c.families[i].name == f.name {
				return i
			}
		}
		c.families = append(c.families, f)
		return len(c.families) - 1
	}
	for _, id := range numbers.Histograms {
		metric := id.Row().Metric
		percentile := numbers.Metric{Name: metric.Name + names.SuffixPercentile, Unit: metric.Unit, Description: "Percentile over a sliding window. " + metric.Description}
		c.histogram[id] = add(metric, dto.MetricType_HISTOGRAM)
		c.percentile[id] = add(percentile, dto.MetricType_GAUGE)
	}
	for i, counter := range series.Counters {
		c.counter[i] = add(counter.Metric, dto.MetricType_COUNTER)
	}
	c.requests = add(series.Requests, dto.MetricType_COUNTER)
	c.sloRequests = add(series.SLORequests, dto.MetricType_COUNTER)
	c.sloObjective = add(series.SLOObjective, dto.MetricType_GAUGE)
	c.sloBurnRate = add(series.SLOBurnRate, dto.MetricType_GAUGE)
	c.sloBudget = add(series.SLOBudgetRemaining, dto.MetricType_GAUGE)
	return c, err
}

// dimensionLabels returns the label of each dimension.
func dimensionLabels(dimensions []string) ([]string, error) {
	var labels []string
	var namer otlptranslator.LabelNamer
	for _, dimension := range dimensions {
		label, err := namer.Build(dimension)
		if err != nil {
			return nil, fmt.Errorf("`dimensions` has %q, which cannot become a label: %w", dimension, err)
		}
		if strings.HasPrefix(label, "__") {
			return nil, fmt.Errorf("`dimensions` has %q, but Prometheus reserves labels that start with two underscores; rename the attribute", dimension)
		}
		labels = append(labels, label)
	}
	return labels, nil
}
