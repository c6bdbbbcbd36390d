// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

type now struct {
	Time number `json:"time"`
	Boot string `json:"boot"`
	scope
	WindowSeconds         number              `json:"window_seconds"`
	RequestsPerSecond     number              `json:"requests_per_second"`
	OutputTokensPerSecond number              `json:"output_tokens_per_second"`
	InputTokensPerSecond  number              `json:"input_tokens_per_second"`
	InFlight              number              `json:"in_flight"`
	OpenStreams           *int                `json:"open_streams"`
	WaitingStreams        *int                `json:"waiting_streams"`
	SilentStreams         *int                `json:"silent_streams"`
	LongestSilent         []silentStream      `json:"longest_silent"`
	Engines               []engine            `json:"engines"`
	EnginesTotal          *int                `json:"engines_total"`
	Requests              map[string]uint64   `json:"requests"`
	Failed                map[string]uint64   `json:"failed"`
	Tokens                map[string]number   `json:"tokens"`
	Stalls                stalls              `json:"stalls"`
	Unmeasured            []unmeasured        `json:"unmeasured"`
	Indicators            map[string]*Summary `json:"indicators"`
	SLOs                  []sloNow            `json:"slos"`
	Series                seriesCount         `json:"series"`
	Doubts                []doubt             `json:"doubts"`
}

type stalls struct {
	Count   number `json:"count"`
	Seconds number `json:"seconds"`
}

type unmeasured struct {
	Indicator string `json:"indicator"`
	Reason    string `json:"reason"`
	Requests  uint64 `json:"requests"`
	Share     number `json:"share"`
}

type seriesCount struct {
	Held  int `json:"held"`
	Limit int `json:"limit"`
}

// rateWindow is the window of the current rates. Those of a range that has ended are over the whole range: the slots
// of its last minute may be wider.
const rateWindow = time.Minute

func (p *Page) now(q *query) (any, error) {
	selection := p.newSelection(q)
	answer := &now{
		Time: seconds(q.now), Boot: p.boot, scope: q.scope(),
		RequestsPerSecond: missing, OutputTokensPerSecond: missing, InputTokensPerSecond: missing, InFlight: missing,
		Series: p.seriesCount(), Doubts: append(p.doubts(), q.seen.Doubts...),
	}
	if !q.ended {
		answer.setOpenStreams(p, q)
		answer.setEngines(p)
	}
	answer.setRates(p, q, selection)
	everything := selection.add(q.view.Slots(), &history.Want{Quantities: bits(numbers.Indicators[:])})
	requests := total(everything)
	answer.Unmeasured = unmeasuredOf(everything)
	sum := selection.add(q.view.Slots(), q.filter.together(series.HistoryQuantities[:]...))
	answer.Indicators = summaries(&sum.Parts[0], false)
	answer.Requests = map[string]uint64{}
	for outcome, name := range series.OutcomeNames {
		answer.Requests[name] = sum.Requests[outcome]
	}
	answer.Tokens, answer.Failed = map[string]number{}, map[string]uint64{}
	for _, c := range series.Counters {
		switch n := sum.Counts[c.Count]; {
		case c.Type != "":
			answer.Tokens[c.Type] = number(n)
		case c.Cause != "":
			answer.Failed[c.Cause] = uint64(n)
		}
	}
	answer.Stalls = stalls{number(sum.Counts[series.CountOf(numbers.StallCount)]), number(sum.Counts[series.CountOf(numbers.StallDuration)])}
	answer.SLOs = p.slosNow(q, sum, requests)
	return answer, nil
}

// setRates sets the rates of the last minute.
func (n *now) setRates(p *Page, q *query, selection *selection) {
	minute := q.view
	if !q.ended {
		minute = p.viewFrom(q, aligned(q.now.Add(-rateWindow), series.HistorySlot))
	}
	if minute.Since.IsZero() {
		n.WindowSeconds = 0
		return
	}
	since := minute.From
	if minute.Since.After(since) {
		since = minute.Since
	}
	window := number(max(minute.Until.Sub(since).Seconds(), 1))
	sum := selection.add(minute.Slots(), q.filter.together(numbers.RequestDuration))
	n.WindowSeconds = window
	n.RequestsPerSecond = number(total(sum)) / window
	n.OutputTokensPerSecond = number(sum.Counts[series.CountOf(numbers.OutputTokens)]) / window
	n.InputTokensPerSecond = number(sum.Counts[series.CountOf(numbers.InputTokens)]) / window
	n.InFlight = number(sum.Parts[0].Of(numbers.RequestDuration).Sum()) / window // Little's law
}

// reasonUnread is the reason of requests without an indicator whose spans give none: no processor read them.
const reasonUnread = "unread"

// unmeasuredOf returns the requests without an indicator, as a share of those of all outcomes.
func unmeasuredOf(sum *history.Sum) []unmeasured {
	all := []unmeasured{}
	requests := total(sum)
	add := func(indicator, reason string, n uint64) {
		all = append(all, unmeasured{indicator, reason, n, number(n) / number(requests)})
	}
	unread := map[string]int64{}
	for i, name := range names.UnmeasuredIndicators {
		if id := numbers.Indicators[i]; !id.IsDistribution() {
			unread[name] = int64(requests) - int64(sum.Parts[0].Of(id).Count())
		}
	}
	for _, c := range series.Counters {
		if n := sum.Counts[c.Count]; c.Reason != "" && n > 0 {
			add(c.Indicator, c.Reason, uint64(n))
			unread[c.Indicator] -= int64(n)
		}
	}
	for indicator, n := range unread {
		if n > 0 {
			add(indicator, reasonUnread, uint64(n))
		}
	}
	slices.SortFunc(all, func(a, b unmeasured) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Indicator+a.Reason, b.Indicator+b.Reason))
	})
	return all
}

// doubt is a reason to doubt the numbers.
type doubt struct {
	Message string `json:"message"`
	About   string `json:"about"`
	Since   number `json:"since"`
}

// doubts returns the doubts of all components of this process, oldest first.
func (p *Page) doubts() []doubt {
	all := []doubt{}
	for _, component := range p.Doubts.All() {
		for _, d := range component.Current() {
			all = append(all, doubt{d.Message, d.About, seconds(d.Since)})
		}
	}
	slices.SortFunc(all, func(a, b doubt) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Message+a.About, b.Message+b.About))
	})
	return slices.CompactFunc(all, func(a, b doubt) bool { return a.Message == b.Message && a.About == b.About })
}

func (p *Page) seriesCount() seriesCount { return seriesCount{p.Engine.Held(), p.MaxSeries} }
