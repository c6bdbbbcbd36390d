// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
)

// functions are for the queries of the dashboards. A pipe passes the last argument:
// everyRequest | where `type="output"` | sum "tokenpulse_tokens_total".
var functions = template.FuncMap{
	"everySeries":  func() selection { return everySeries },
	"everyRequest": func() selection { return everyRequest },
	"scraped":      func() selection { return where(`instance=~"$engine"`, everySeries) },
	"ofOutcome":    func() selection { return where(`outcome=~"$outcome"`, everyRequest) },
	"judged":       func() selection { return by("slo", where(`slo=~"$slo"`, everyRequest)) },
	"side":         func(variable string, s selection) selection { return where(`$by="$`+variable+`"`, s) },
	"where":        where, "by": by, "over": over,
	"series": series, "sum": sum, "quantile": quantile, "total": total, "mean": mean, "buckets": buckets,
	"failed": failed, "attained": attained, "perRequest": perRequest, "per": per,
	"burn": burn, "left": left, "judgedShare": judgedShare, "objectives": func() string { return objectives }, "change": change, "allPercentiles": allPercentiles,
}

// selection says which series a query reads, over which window, and by which labels it
// groups the result.
type selection struct {
	matchers []string
	labels   []string
	window   string
}

var everySeries = selection{window: "$__rate_interval"}

// everyRequest selects the requests that the variables of a dashboard select.
var everyRequest = selection{
	matchers: []string{
		`service_name=~"$service"`, `gen_ai_provider_name=~"$provider"`, `gen_ai_request_model=~"$model"`,
		`gen_ai_operation_name=~"$operation"`, `vantage="$vantage"`,
	},
	window: everySeries.window,
}

func where(matcher string, s selection) selection {
	s.matchers = append(slices.Clone(s.matchers), matcher)
	return s
}

func by(label string, s selection) selection {
	s.labels = append(slices.Clone(s.labels), label)
	return s
}

func over(window string, s selection) selection {
	s.window = window
	return s
}

func series(metric string, s selection) string {
	return metric + "{" + strings.Join(s.matchers, ", ") + "}"
}

// sum adds the increase per second of counters or histograms.
func sum(metric string, s selection) string {
	by := " "
	if len(s.labels) > 0 {
		by = " by (" + strings.Join(s.labels, ", ") + ") "
	}
	return fmt.Sprintf("sum%s(rate(%s[%s]))", by, series(metric, s), s.window)
}

// Prometheus stores native buckets, classic ones or both. Each query on a histogram asks
// for native buckets, then for classic ones where native ones are missing. A comparison
// with 0 removes NaN, the answer of a window without a value.

func quantile(q, histogram string, s selection) string {
	return fmt.Sprintf("histogram_quantile(%s, %s) >= 0\nor\nhistogram_quantile(%s, %s) >= 0",
		q, sum(histogram, s), q, sum(histogram+"_bucket", by("le", s)))
}

// allPercentiles has a row for each percentile.
func allPercentiles(histogram string, s selection) string {
	var all []string
	for _, q := range [][2]string{{"p50", "0.5"}, {"p75", "0.75"}, {"p90", "0.9"}, {"p95", "0.95"}, {"p99", "0.99"}} {
		all = append(all, fmt.Sprintf("label_replace(\n%s,\n\"percentile\", %q, \"\", \"\")", quantile(q[1], histogram, s), q[0]))
	}
	return strings.Join(all, "\nor\n")
}

// total adds the values of a histogram, per second.
func total(histogram string, s selection) string {
	return fmt.Sprintf("(histogram_sum(%s) or %s)", sum(histogram, s), sum(histogram+"_sum", s))
}

func mean(histogram string, s selection) string {
	count := fmt.Sprintf("(histogram_count(%s) or %s)", sum(histogram, s), sum(histogram+"_count", s))
	return per(count, total(histogram, s))
}

// buckets is for heatmaps: native histograms, or the classic buckets as series.
func buckets(histogram string, s selection) string {
	return sum(histogram, s) + "\nor ignoring (le)\n" + sum(histogram+"_bucket", by("le", s))
}

// per divides by a rate that may be 0.
func per(rate, value string) string { return value + "\n/ (" + rate + " > 0)" }

// share divides the rate of a counter by that of a whole. A part without a series is 0.
func share(counter string, part, whole selection) string {
	return per(sum(counter, whole), fmt.Sprintf("(%s or 0 * %s)", sum(counter, part), sum(counter, whole)))
}

const requests, verdicts = "tokenpulse_requests_total", "tokenpulse_slo_requests_total"

// failed is the share of requests with an error or without an end.
func failed(s selection) string { return share(requests, where(`outcome=~"error|incomplete"`, s), s) }

// attained is the share of good requests among those that an SLO judged.
func attained(s selection) string {
	return share(verdicts, where(`verdict="good"`, s), where(`verdict=~"good|bad"`, s))
}

// perRequest divides a counter of tokens by the requests.
func perRequest(tokenType string, s selection) string {
	return per(sum(requests, s), sum("tokenpulse_tokens_total", where(fmt.Sprintf("type=%q", tokenType), s)))
}

// judgedShare is the share of requests that an SLO judged.
func judgedShare(s selection) string { return share(verdicts, where(`verdict=~"good|bad"`, s), s) }

// objectives has one value per SLO, as the rules do: the strictest.
const objectives = `max by (slo) (tokenpulse_slo_objective{slo=~"$slo"})`

// burn is computed from counters, so that it is right for several Collectors together.
func burn(window string, s selection) string {
	return fmt.Sprintf("(1 - %s)\n/ on (slo) group_left ()\n(1 - %s)", attained(over(window, s)), objectives)
}

// left is the error budget that is left.
func left(s selection) string {
	return "min by (" + strings.Join(s.labels, ", ") + ") (" + series("tokenpulse_slo_error_budget_remaining", s) + ")"
}

func change(from, to string) string { return "(" + to + ")\n/ (" + from + ")\n- 1" }
