// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// The model of token_sli: what it should show, computed from what was sent. The reference
// has the formulas of docs/definitions.md.

const (
	requestDuration    = "tokenpulse.request.duration"
	timeToFirstToken   = "tokenpulse.time_to_first_token"
	timePerOutputToken = "tokenpulse.time_per_output_token"
)

// requestKey is what deduplication recognises a request by.
type requestKey struct {
	trace   [16]byte
	span    [8]byte
	vantage string
}

// seriesKey is the dimensions and the vantage of a series.
type seriesKey struct{ service, model, vantage string }

// metric returns the name of a time series as scrape returns it, with further labels.
func (k seriesKey) metric(name string, labels ...string) string {
	if k == (seriesKey{}) {
		labels = append(labels, "otel_metric_overflow=true")
	} else {
		labels = append(labels, "gen_ai_request_model="+k.model, "service_name="+k.service, "vantage="+k.vantage)
	}
	slices.Sort(labels)
	return name + "{" + strings.Join(labels, ",") + "}"
}

// group is what one series should show.
type group struct {
	values   map[string]float64
	lastSeen time.Time
}

// budget counts the verdicts that an error budget is computed from.
type budget struct{ good, bad int }

// aggregate is the model of one output of token_sli: the exporter, or the connector.
type aggregate struct {
	series   map[seriesKey]*group
	standard map[string]*group // by the model, of the metrics of conventions
	recorded map[requestKey]bool
	requests int
	repeated int
	overflow int
	// standardOverflow is that of the metrics of conventions.
	standardOverflow int
	budgets          map[seriesKey]budget
	since            time.Time
	interval         time.Duration // of rounds, which expire series
}

func (w *world) newAggregate(budgets map[seriesKey]budget) *aggregate {
	interval := 5 * time.Second
	if w.expiration > 0 {
		interval = min(interval, w.expiration/4)
	}
	if budgets == nil {
		budgets = map[seriesKey]budget{}
	}
	return &aggregate{series: map[seriesKey]*group{}, standard: map[string]*group{}, recorded: map[requestKey]bool{}, budgets: budgets, interval: interval}
}

// record adds a request, unless it was recorded before.
func (w *world) record(a *aggregate, key requestKey, c *content, outcome string, cut bool) {
	if a.recorded[key] {
		a.repeated++
		return
	}
	a.recorded[key] = true
	a.requests++
	w.expireSeries(a)
	w.recordStandard(a, c, outcome)
	k := seriesKey{c.service, c.model, c.vantage}
	if a.series[k] == nil && !w.hasRoom(a, k) {
		k = seriesKey{}
		a.overflow++
	}
	s := a.series[k]
	if s == nil {
		s = &group{values: map[string]float64{}}
		a.series[k] = s
	}
	s.lastSeen = time.Now()
	for name, v := range valuesOf(k, c, outcome, cut) {
		s.values[name] += v
	}
	if v := verdictsOf(c, outcome, cut)["ttft"]; v != "not_eligible" {
		b := a.budgets[k]
		if v == "good" {
			b.good++
		} else {
			b.bad++
		}
		a.budgets[k] = b
	}
}

// hasRoom reports whether a new series may be opened: a service may have half of them.
func (w *world) hasRoom(a *aggregate, k seriesKey) bool {
	held, ofService := 0, 0
	for other := range a.series {
		if other == (seriesKey{}) {
			continue
		}
		held++
		if other.service == k.service {
			ofService++
		}
	}
	return held < w.maxSeries && ofService < (w.maxSeries+1)/2
}

// expireSeries removes the series that a round since has expired.
func (w *world) expireSeries(a *aggregate) {
	if w.expiration == 0 {
		return
	}
	expired := func(s *group) bool {
		idle := s.lastSeen.Add(w.expiration).Sub(a.since)
		return !a.since.Add((idle/a.interval + 1) * a.interval).After(time.Now())
	}
	maps.DeleteFunc(a.series, func(_ seriesKey, s *group) bool { return expired(s) })
	maps.DeleteFunc(a.standard, func(_ string, s *group) bool { return expired(s) })
}

// recordStandard adds a request to the metrics of conventions. Their only attribute is the model of the request.
func (w *world) recordStandard(a *aggregate, c *content, outcome string) {
	label, key := "gen_ai_request_model="+c.model, c.model
	if held := len(a.standard); a.standard[key] == nil && (held > w.maxSeries || held == w.maxSeries && a.standard[""] == nil) {
		label, key = "otel_metric_overflow=true", ""
		a.standardOverflow++
	}
	labels := []string{label}
	if outcome == "error" || outcome == "incomplete" {
		labels = []string{"error_type=_OTHER", label}
	}
	s := a.standard[key]
	if s == nil {
		s = &group{values: map[string]float64{}}
		a.standard[key] = s
	}
	s.lastSeen = time.Now()
	answer, all := c.answer(), "{"+strings.Join(labels, ",")+"}"
	side := "server_request"
	if c.vantage == "client" {
		side = "client_inference"
	}
	s.values["gen_ai_"+side+"_duration_seconds_count"+all]++
	s.values["gen_ai_"+side+"_duration_seconds_sum"+all] += answer.Numbers[requestDuration].Value
	if _, paced := answer.Numbers[timePerOutputToken]; paced && side == "server_request" && outcome == "success" {
		s.values["gen_ai_server_time_per_output_token_seconds_count{"+label+"}"]++
	}
}

// valuesOf returns what one request adds to the metrics of its series.
func valuesOf(k seriesKey, c *content, outcome string, cut bool) map[string]float64 {
	v := map[string]float64{}
	outcomeLabel := "outcome=" + outcome
	observe := func(name string, count int, sum float64) {
		v[k.metric("tokenpulse_"+name+"_seconds_count", outcomeLabel)] = float64(count)
		v[k.metric("tokenpulse_"+name+"_seconds_sum", outcomeLabel)] = sum
	}
	v[k.metric("tokenpulse_requests_total", outcomeLabel)] = 1
	if outcome == "error" || outcome == "incomplete" {
		v[k.metric("tokenpulse_requests_failed_total", "cause=other")] = 1 // streams have no HTTP status
	}
	answer := c.answer()
	for attribute, name := range map[string]string{
		requestDuration: "request_duration", timeToFirstToken: "time_to_first_token", timePerOutputToken: "time_per_output_token",
	} {
		if number, known := answer.Numbers[attribute]; known {
			observe(name, 1, number.Value)
		}
	}
	if gaps := len(answer.InterToken); gaps > 0 {
		observe("inter_token_latency", gaps, reference.Mean(reference.Values(answer.InterToken))*float64(gaps))
	}
	if answer.OutputTokens > 0 {
		v[k.metric("tokenpulse_tokens_total", "type=output")] = float64(answer.OutputTokens)
	}
	if c.ended && c.usage {
		v[k.metric("tokenpulse_tokens_total", "type=input")] = inputTokens
	}
	for slo, verdict := range verdictsOf(c, outcome, cut) {
		v[k.metric("tokenpulse_slo_requests_total", "slo="+slo, "verdict="+verdict)] = 1
	}
	return v
}

// answer returns the numbers of the stream, as far as the receiver has it.
func (c *content) answer() reference.Answer {
	s := reference.Stream{
		Start: c.start, NoEnd: !c.ended, Usage: reference.NoUsage, Cancelled: c.outcome == "cancelled",
	}
	for _, chunk := range c.arrivals() {
		s.Chunks = append(s.Chunks, reference.Chunk{At: chunk.at, Tokens: int64(chunk.tokens), Channel: reference.Content})
	}
	if c.ended {
		s.End = c.end
		if c.usage {
			s.Usage.Input, s.Usage.Output = inputTokens, int64(tokensOf(c.stream.chunks))
		}
	}
	return reference.Of(&s, reference.Settings{StallThreshold: int64(stallThreshold)})
}

// verdictsOf judges one request.
func verdictsOf(c *content, outcome string, cut bool) map[string]string {
	answer := c.answer()
	judge := func(indicator string, threshold time.Duration) string {
		number, known := answer.Numbers[indicator]
		switch {
		case cut, !known && outcome == "success":
			return "not_eligible"
		case known && number.Value <= threshold.Seconds():
			return "good"
		default:
			return "bad"
		}
	}
	v := map[string]string{
		"ttft": judge(timeToFirstToken, ttftThreshold),
		"tpot": judge(timePerOutputToken, tpotThreshold),
	}
	switch {
	case cut:
		v["all"] = "not_eligible"
	case outcome == "error", outcome == "incomplete", answer.StalledAtEnd:
		v["all"] = "bad"
	case v["ttft"] == "bad", v["tpot"] == "bad":
		v["all"] = "bad"
	case v["ttft"] == "good", v["tpot"] == "good":
		v["all"] = "good"
	default:
		v["all"] = "not_eligible"
	}
	return v
}
