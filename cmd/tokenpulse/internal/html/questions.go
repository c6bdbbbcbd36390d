// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package html

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// Limits of the file. The answers about all requests in the usual split are always there.
const (
	// maxBytes limits the answers. Those about single requests end at half of it, to leave room for filters.
	maxBytes = 8 << 20
	// maxFilters limits the filters that the page offers.
	maxFilters = 40
)

// Numbers of groups and requests that the page asks for.
const (
	chartGroups    = 6
	phaseGroups    = 12
	slowRequests   = 12
	comparedGroups = 12
)

// answersOf returns the answers of an API to the questions of the page, up to the limits.
func answersOf(api http.Handler) (map[string]json.RawMessage, error) {
	a := &asker{api: api, answers: map[string]json.RawMessage{}, pending: map[string]json.RawMessage{}}
	all := a.view(nil)
	a.keep(math.MaxInt)
	a.detail(all)
	if all.more {
		a.split(nil, all.Meta.SplitBy, "requests")
		a.keep(maxBytes)
	}
	filters := a.splits(all)
	for _, filter := range filters[:min(len(filters), maxFilters)] {
		v := a.view(filter)
		if a.keep(maxBytes) {
			a.detail(v)
			a.compare(filter, v.Meta.SplitBy, v.groups)
		}
	}
	return a.answers, a.err
}

// view is what the page shows of the requests that a filter selects.
type view struct {
	Meta struct {
		SplitBy    string `json:"split_by"`
		Dimensions []struct {
			Name   string
			Values []string
		}
	}
	Now struct {
		Requests map[string]uint64
		Vantage  struct{ Requests []struct{ Vantage string } }
	}
	Worst struct{ Indicators, SLOs map[string]standout }
	// groups are those of the charts. There are more if more is set.
	groups []string
	more   bool
	slow   []string // IDs
}

type standout struct{ By, Value string }

// view asks what the page shows of the requests that a filter selects.
func (a *asker) view(filter url.Values) *view {
	v := new(view)
	selection := maps.Clone(filter)
	delete(selection, "outcome") // it decides nothing in meta
	a.ask("meta", selection, &v.Meta)
	a.ask("now", filter, &v.Now)
	a.ask("worst", filter, &v.Worst)
	for _, path := range []string{"heatmap", "load", "prompts"} {
		a.ask(path, filter, nil)
	}
	for _, rank := range []string{"", "time_to_first_token", "time_per_output_token"} {
		var answer struct{ Requests []struct{ ID string } }
		a.ask("requests", with(filter, "slowest", rank, "limit", strconv.Itoa(slowRequests)), &answer)
		for _, r := range answer.Requests {
			v.slow = append(v.slow, r.ID)
		}
	}
	v.groups, v.more = a.split(filter, v.Meta.SplitBy, "")
	return v
}

// split asks for the charts by a dimension, and returns their groups, and whether there are more.
func (a *asker) split(filter url.Values, by, rank string) (groups []string, more bool) {
	var trends struct {
		Groups []struct{ Value string }
		Total  int `json:"groups_total"`
	}
	query := with(filter, "by", by, "rank", rank, "groups", strconv.Itoa(chartGroups))
	a.ask("trends", query, &trends)
	a.ask("distributions", query, nil)
	a.ask("distributions", with(query, "groups", strconv.Itoa(phaseGroups)), nil)
	for _, g := range trends.Groups {
		groups = append(groups, g.Value)
	}
	return groups, trends.Total > len(groups)
}

// splits asks for the charts of all requests by each grouping, and returns the filters to offer: first those that the charts
// name, then those with the most requests.
func (a *asker) splits(v *view) (filters []url.Values) {
	var named, others []url.Values
	for _, by := range v.groupings() {
		groups := v.groups
		if by != v.Meta.SplitBy {
			groups, _ = a.split(nil, by, "")
			a.keep(maxBytes)
		}
		var most struct{ Groups []struct{ Value string } }
		a.look("distributions", with(nil, "by", by, "rank", "requests", "groups", strconv.Itoa(maxFilters)), &most)
		for _, value := range groups {
			named = append(named, filter(by, value))
		}
		for _, g := range most.Groups {
			others = append(others, filter(by, g.Value))
			if len(groups) < comparedGroups && !slices.Contains(groups, g.Value) {
				groups = append(groups, g.Value)
			}
		}
		a.compare(nil, by, groups)
	}
	return unique(slices.Concat(v.standouts(), named, others))
}

// groupings returns what requests differ in, that which splits the charts first.
func (v *view) groupings() (all []string) {
	for _, d := range v.Meta.Dimensions {
		if len(d.Values) > 1 {
			all = append(all, d.Name)
		}
	}
	if len(v.Now.Vantage.Requests) > 1 {
		all = append(all, "vantage")
	}
	if outcomes := slices.DeleteFunc(slices.Collect(maps.Values(v.Now.Requests)), func(n uint64) bool { return n == 0 }); len(outcomes) > 1 {
		all = append(all, "outcome")
	}
	if i := slices.Index(all, v.Meta.SplitBy); i > 0 {
		all = slices.Insert(slices.Delete(all, i, i+1), 0, v.Meta.SplitBy)
	}
	return all
}

// standouts returns the filters on the groups that stand out, and on the vantages, which the page offers beside the numbers.
func (v *view) standouts() (filters []url.Values) {
	if len(v.Now.Vantage.Requests) > 1 {
		filters = append(filters, filter("vantage", "all"))
	}
	for _, of := range []map[string]standout{v.Worst.Indicators, v.Worst.SLOs} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			filters = append(filters, filter(of[name].By, of[name].Value))
		}
	}
	return filters
}

// compare asks for the distributions of some groups, of which the page compares two.
func (a *asker) compare(filter url.Values, by string, groups []string) {
	if len(groups) < 2 {
		return
	}
	query := with(filter, "by", by, "cdf", "true")
	query["value"] = groups
	a.ask("distributions", query, nil)
	a.keep(maxBytes)
}

// detail asks for the slowest requests of a view.
func (a *asker) detail(v *view) {
	for _, id := range v.slow {
		if _, known := a.answers["requests/"+id+"?"]; known {
			continue
		}
		a.ask("requests/"+id, nil, nil)
		a.keep(maxBytes / 2)
	}
}

// filter returns the parameters that select a value of a grouping. Requests without a vantage have none.
func filter(by, value string) url.Values {
	switch by {
	case "vantage", "outcome":
		if value == "" {
			return nil
		}
		return url.Values{by: {value}}
	default:
		return url.Values{"where": {by + "=" + value}}
	}
}

// unique returns the filters without those that are empty or come again.
func unique(filters []url.Values) []url.Values {
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(filters, func(f url.Values) bool {
		again := seen[f.Encode()]
		seen[f.Encode()] = true
		return again
	})
}

// with returns parameters with others, of which empty ones are left out.
func with(query url.Values, pairs ...string) url.Values {
	all := url.Values{}
	maps.Copy(all, query)
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			all.Set(pair[0], pair[1])
		}
	}
	return all
}
