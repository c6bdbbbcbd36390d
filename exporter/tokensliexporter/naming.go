// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/otlptranslator"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// newFamily translates a metric by OpenTelemetry's rules for Prometheus.
func newFamily(m *numbers.Metric, kind dto.MetricType) (*dto.MetricFamily, error) {
	kinds := map[dto.MetricType]otlptranslator.MetricType{
		dto.MetricType_COUNTER:   otlptranslator.MetricTypeMonotonicCounter,
		dto.MetricType_GAUGE:     otlptranslator.MetricTypeGauge,
		dto.MetricType_HISTOGRAM: otlptranslator.MetricTypeHistogram,
	}
	namer := otlptranslator.MetricNamer{WithMetricSuffixes: true}
	name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: kinds[kind]})
	f := &dto.MetricFamily{Name: &name, Help: &m.Description, Type: &kind}
	if m.Unit == numbers.Seconds {
		f.Unit = proto.String("seconds") // OpenMetrics unit, the suffix of the name
	}
	return f, err
}

// percentileMetrics holds the gauge that belongs to each histogram, by its name.
var percentileMetrics = func() map[string]*numbers.Metric {
	all := map[string]*numbers.Metric{}
	for _, id := range numbers.Histograms {
		m := id.Row().Metric
		all[m.Name] = &numbers.Metric{Name: m.Name + names.SuffixPercentile, Unit: m.Unit, Description: "Percentile over a sliding window. " + m.Description}
	}
	return all
}()

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
