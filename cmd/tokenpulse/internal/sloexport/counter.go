// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sloexport

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/otlptranslator"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// counter is that of requests by verdict, as Prometheus has it.
type counter struct {
	metric string
	// grouping has the labels by which the rules of this repository tell requests apart. Series of another vantage count
	// the same requests again, so a sum over all of them would weigh some requests more than others.
	grouping []string
}

const labelJob = "job" // of Prometheus

// counterOf returns the counter of series with these dimensions.
func counterOf(dimensions []string) counter {
	namer := otlptranslator.MetricNamer{WithMetricSuffixes: true}
	metric, err := namer.Build(otlptranslator.Metric{Name: series.SLORequests.Name, Unit: series.SLORequests.Unit, Type: otlptranslator.MetricTypeMonotonicCounter})
	if err != nil { // cannot happen: the name is a constant
		panic(err)
	}
	grouping := []string{labelJob, names.LabelVantage}
	for _, attribute := range [...]string{names.GenAIProviderName, names.GenAIRequestModel} {
		if slices.Contains(dimensions, attribute) {
			grouping = append(grouping, strings.ReplaceAll(attribute, ".", "_"))
		}
	}
	return counter{metric, grouping}
}

// Matchers of verdicts.
var (
	bad      = equal(names.LabelVerdict, names.VerdictBad)
	good     = equal(names.LabelVerdict, names.VerdictGood)
	eligible = fmt.Sprintf(`%s=~"%s|%s"`, names.LabelVerdict, names.VerdictGood, names.VerdictBad)
)

// equal returns a matcher of PromQL, whose strings have the escapes of Go.
func equal(label, value string) string { return label + "=" + strconv.Quote(value) }

// of selects the requests of an SLO.
func (c counter) of(slo string, verdict string) string {
	return c.selector(equal(names.LabelSLO, slo), verdict)
}

func (c counter) selector(matchers ...string) string {
	return c.metric + "{" + strings.Join(matchers, ", ") + "}"
}
