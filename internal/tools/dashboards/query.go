// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// Metrics that the panels query. docs/metrics.md describes them.
const (
	ttft        = "tokenpulse_time_to_first_token_seconds"
	tpot        = "tokenpulse_time_per_output_token_seconds"
	itl         = "tokenpulse_inter_token_latency_seconds"
	duration    = "tokenpulse_request_duration_seconds"
	phase       = "tokenpulse_phase_duration_seconds"
	answer      = "tokenpulse_trace_time_to_answer_seconds"
	requests    = "tokenpulse_requests_total"
	tokens      = "tokenpulse_tokens_total"
	stalls      = "tokenpulse_stalls_total"
	stalled     = "tokenpulse_stall_duration_seconds_total"
	unmeasured  = "tokenpulse_requests_unmeasured_total"
	verdicts    = "tokenpulse_slo_requests_total"
	objective   = "tokenpulse_slo_objective"
	budgetLeft  = "tokenpulse_slo_error_budget_remaining"
	perInterval = "$__rate_interval"
	perRange    = "$__range"
)

// selection says which series a query reads, over which window, and by which labels it
// groups the result.
type selection struct {
	matchers []string
	labels   []string
	window   string
}

// everyRequest selects the requests that the variables of a dashboard select.
var everyRequest = selection{
	matchers: []string{
		`service_name=~"$service"`, `gen_ai_provider_name=~"$provider"`, `gen_ai_request_model=~"$model"`,
		`gen_ai_operation_name=~"$operation"`, `vantage="$vantage"`,
	},
	window: perInterval,
}

// ofOutcome also applies the variable $outcome, for metrics with that label.
var ofOutcome = everyRequest.where(`outcome=~"$outcome"`)

func (s selection) where(matchers ...string) selection {
	s.matchers = slices.Concat(s.matchers, matchers)
	return s
}

func (s selection) by(labels ...string) selection {
	s.labels = slices.Concat(s.labels, labels)
	return s
}

func (s selection) over(window string) selection {
	s.window = window
	return s
}

func (s selection) series(metric string) string {
	return metric + "{" + strings.Join(s.matchers, ", ") + "}"
}

// sum adds the increase per second of counters or histograms.
func (s selection) sum(metric string) string {
	by := " "
	if len(s.labels) > 0 {
		by = " by (" + strings.Join(s.labels, ", ") + ") "
	}
	return fmt.Sprintf("sum%s(rate(%s[%s]))", by, s.series(metric), s.window)
}

// Prometheus stores native buckets, classic ones or both. Each query on a histogram asks
// for native buckets, then for classic ones where native ones are missing. A comparison
// with 0 removes NaN, the answer of a window without a value.

func (s selection) quantile(q, histogram string) string {
	return fmt.Sprintf("histogram_quantile(%s, %s) >= 0\nor\nhistogram_quantile(%s, %s) >= 0",
		q, s.sum(histogram), q, s.by("le").sum(histogram+"_bucket"))
}

// total adds the values of a histogram, per second.
func (s selection) total(histogram string) string {
	return fmt.Sprintf("(histogram_sum(%s) or %s)", s.sum(histogram), s.sum(histogram+"_sum"))
}

func (s selection) count(histogram string) string {
	return fmt.Sprintf("(histogram_count(%s) or %s)", s.sum(histogram), s.sum(histogram+"_count"))
}

func (s selection) mean(histogram string) string {
	return s.total(histogram) + "\n/ (" + s.count(histogram) + " > 0)"
}

// buckets is for heatmaps: native histograms, or the classic buckets as series.
func (s selection) buckets(histogram string) string {
	return s.sum(histogram) + "\nor ignoring (le)\n" + s.by("le").sum(histogram+"_bucket")
}

// share divides the rate of a counter by that of a whole. A part without a series is 0.
func share(part, whole selection, counter string) string {
	return fmt.Sprintf("(%s or 0 * %s)\n/ (%s > 0)", part.sum(counter), whole.sum(counter), whole.sum(counter))
}

// failed is the share of requests with an error or without an end.
func (s selection) failed() string {
	return share(s.where(`outcome=~"error|incomplete"`), s, requests)
}

// attained is the share of good requests among those that an SLO judged.
func (s selection) attained() string {
	return share(s.where(`verdict="good"`), s.where(`verdict=~"good|bad"`), verdicts)
}

// perRequest divides a counter of tokens by the requests.
func (s selection) perRequest(tokenType string) string {
	return s.where(fmt.Sprintf("type=%q", tokenType)).sum(tokens) + "\n/ (" + s.sum(requests) + " > 0)"
}
