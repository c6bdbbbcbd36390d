// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// period is a value of the parameter `range`.
type period struct {
	name   string
	length time.Duration
	step   time.Duration
}

// periods are those of the page. Another one has the steps of the next longer of them.
var periods = [...]period{
	{"5m", 5 * time.Minute, series.HistorySlot},
	{"1h", time.Hour, time.Minute},
	{"24h", 24 * time.Hour, 15 * time.Minute},
	{"7d", 7 * 24 * time.Hour, 2 * time.Hour},
}

// query is a request to the API.
type query struct {
	// now is the end of the range. With the parameter `end`, ended is set: the range is one that has ended.
	now    time.Time
	ended  bool
	period period
	filter filter
	values url.Values
	id     string // of a request
	// asked is when the question arrived. It is later than now if the range has ended.
	asked time.Time
	// view is the history of the range. It is not set at endpoints without filters.
	view history.View
	// seen says which vantage the answer shows. It is nil at endpoints without filters.
	seen *seen

	by         string // the grouping: a dimension, vantage or outcome
	wanted     []string
	groupLimit int
	rank       int // rankWorst or rankRequests
}

// Names of parameters.
const (
	paramRange, paramEnd                        = "range", "end"
	paramWhere, paramVantage, paramOutcome      = "where", "vantage", "outcome"
	paramBy, paramValue, paramGroups, paramRank = "by", "value", "groups", "rank"
	paramCDF, paramIndicator                    = "cdf", "indicator"
	paramSlowest, paramLimit                    = "slowest", "limit"
)

var (
	filterParams = []string{paramRange, paramEnd, paramWhere, paramVantage, paramOutcome}
	groupParams  = append(slices.Clone(filterParams), paramBy, paramValue, paramGroups, paramRank)
)

// params holds the parameters of each endpoint.
var params = map[string][]string{
	"meta": {paramWhere, paramVantage}, "now": filterParams, "events": filterParams, "trends": groupParams,
	"distributions": append(slices.Clone(groupParams), paramCDF),
	"heatmap":       append(slices.Clone(filterParams), paramIndicator),
	"load":          filterParams, "prompts": filterParams, "worst": filterParams,
	"requests": append(slices.Clone(filterParams), paramSlowest, paramLimit), "requests/{id}": nil, "engines": nil, "capacity": {paramSLO, paramLoad, paramWhere, paramVantage},
}

// hasFilters reports whether an endpoint takes the filters of the page.
func hasFilters(endpoint string) bool { return slices.Contains(params[endpoint], paramRange) }

// maxValues limits how often a parameter may be given.
const maxValues = 50

// repeatable parameters may be given more than once.
var repeatable = []string{paramWhere, paramOutcome, paramValue}

func (p *Page) parse(endpoint string, r *http.Request) (*query, error) {
	values, err := parameters(r, params[endpoint])
	if err != nil {
		return nil, err
	}
	q := &query{asked: p.Now(), values: values, id: r.PathValue("id")}
	if err := p.parseRange(q); err != nil {
		return nil, err
	}
	if q.filter, err = p.parseFilter(values); err != nil {
		return nil, err
	}
	if err := q.parseVantage(); err != nil {
		return nil, err
	}
	return q, p.parseGroups(q)
}

// parameters returns those of a request.
func parameters(r *http.Request, known []string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("encode the names and values of parameters as in a URL", "the query does not parse")
	}
	return values, checkNames(known, values)
}

// checkNames checks that all parameters are known, and given no more often than they may be.
func checkNames(known []string, values url.Values) error {
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			return invalid(remedyOf("valid parameters", known), "unknown parameter %q", name)
		case len(given) > 1 && !slices.Contains(repeatable, name):
			return invalid("give it once", "parameter %q is given %d times", name, len(given))
		case len(given) > maxValues:
			return invalid(fmt.Sprintf("give it at most %d times", maxValues), "parameter %q is given %d times", name, len(given))
		}
	}
	return nil
}

// parseRange reads the range. That of a recording is all of it.
func (p *Page) parseRange(q *query) error {
	if r := p.Recording; r != nil {
		q.now, q.asked, q.ended, q.period = r.End, r.End, true, period{length: r.End.Sub(r.Begin), step: r.Step()}
		return nil
	}
	q.now = q.asked
	if err := q.parsePeriod(); err != nil {
		return err
	}
	return q.parseEnd()
}

// parsePeriod reads the length of the range.
func (q *query) parsePeriod() error {
	name := periods[0].name
	if q.values.Has(paramRange) {
		name = q.values.Get(paramRange)
	}
	length, err := model.ParseDuration(name)
	longest := periods[len(periods)-1]
	if err != nil || length < model.Duration(time.Minute) || length > model.Duration(longest.length) {
		return invalid("give a duration from 1m to "+longest.name+", such as 5m, 90m or 6h", "`range` is %q", name)
	}
	i := slices.IndexFunc(periods[:], func(p period) bool { return time.Duration(length) <= p.length })
	q.period = period{name, time.Duration(length), periods[i].step}
	return nil
}

// parseEnd reads the end of the range, which is not after now.
func (q *query) parseEnd() error {
	if !q.values.Has(paramEnd) {
		return nil
	}
	end, err := strconv.ParseInt(q.values.Get(paramEnd), 10, 64)
	if err != nil || end < 0 {
		return invalid("give whole seconds since 1970, such as 1795233292", "`end` is %q", q.values.Get(paramEnd))
	}
	if at := time.Unix(end, 0); at.Before(q.now) {
		q.now, q.ended = at, true
	}
	return nil
}

func remedyOf(what string, known []string) string {
	if len(known) == 0 {
		return what + ": none"
	}
	return what + ": " + strings.Join(known, ", ")
}

// choice returns the index of a parameter's value among the valid ones.
func (q *query) choice(name string, valid []string, otherwise int) (int, error) {
	if !q.values.Has(name) {
		return otherwise, nil
	}
	i := slices.Index(valid, q.values.Get(name))
	if i < 0 {
		return 0, invalid(remedyOf("valid values", valid), "`%s` is %q", name, q.values.Get(name))
	}
	return i, nil
}

// number returns a parameter's value, from 1 to most.
func (q *query) number(name string, otherwise, most int) (int, error) {
	if !q.values.Has(name) {
		return otherwise, nil
	}
	n, err := strconv.Atoi(q.values.Get(name))
	if err != nil || n < 1 || n > most {
		return 0, invalid(fmt.Sprintf("give a whole number from 1 to %d", most), "`%s` is %q", name, q.values.Get(name))
	}
	return n, nil
}

func (p *Page) parseGroups(q *query) (err error) {
	valid := append(slices.Clone(p.dimensions), paramVantage, paramOutcome)
	i, err := q.choice(paramBy, valid, slices.Index(valid, p.groupBy()))
	if err != nil {
		return err
	}
	q.by, q.wanted = valid[i], q.values[paramValue]
	if q.rank, err = q.choice(paramRank, rankNames, rankWorst); err != nil {
		return err
	}
	q.groupLimit, err = q.number(paramGroups, 10, maxValues)
	return err
}

// ranked returns the quantities that the choice of groups needs.
func (q *query) ranked() []numbers.ID {
	if q.rank == rankRequests || q.wanted != nil {
		return nil
	}
	return ranked
}

// groupBy returns the default of the parameter `by`.
func (p *Page) groupBy() string {
	switch {
	case slices.Contains(p.dimensions, names.GenAIRequestModel):
		return names.GenAIRequestModel
	case len(p.dimensions) > 0:
		return p.dimensions[0]
	default:
		return paramVantage
	}
}

// since returns the start of the range: that of a step, so that as few slots as possible are cut.
func (q *query) since() time.Time {
	return aligned(q.now.Add(-q.period.length), q.period.step)
}

// aligned returns the latest multiple of a step since the Unix epoch, at t or before.
func aligned(t time.Time, step time.Duration) time.Time {
	seconds := int64(step / time.Second)
	unix := t.Unix()
	return time.Unix(unix-unix%seconds, 0)
}

// viewFrom returns the history from a time to the end of the range. The slot that is open then is included as far as it is filled.
func (p *Page) viewFrom(q *query, from time.Time) history.View {
	end := q.now
	if !q.ended || p.Recording != nil {
		end = end.Add(time.Second) // it may be in the first second of a slot
	}
	view := p.History.View(from, end)
	if view.Until.After(q.asked) {
		view.Until = q.asked
	}
	if r := p.Recording; r != nil && !view.Since.IsZero() {
		view.Since, view.From = r.Begin, r.Begin
	}
	return view
}

// scope says what an answer is about.
type scope struct {
	Range string `json:"range"`
	// From and To are the range, widened so that it cuts no slot of the history.
	From number `json:"from"`
	To   number `json:"to"`
	Seen *seen  `json:"vantage"`
}

func (q *query) scope() scope {
	return scope{q.period.name, seconds(q.view.From), seconds(q.view.Until), q.seen}
}
