// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// latencies are the indicators of the table of latencies, those of the live page.
var latencies = [...]struct {
	title string
	id    numbers.ID
}{
	{"TTFT", numbers.TimeToFirstToken},
	{"first audio", numbers.TimeToFirstAudio},
	{"ITL", numbers.InterTokenLatency},
	{"TPOT", numbers.TimePerOutputToken},
	{"queue", numbers.QueueDuration},
	{"prefill", numbers.PrefillDuration},
	{"transfer", numbers.TransferDuration},
	{"decode", numbers.DecodeDuration},
	{"network", numbers.NetworkDuration},
	{"duration", numbers.RequestDuration},
}

// WriteTable writes a report as tables of at most so many columns, as far as that is possible by shorter names. 0 means no
// limit.
func (r *Report) WriteTable(out io.Writer, width int) error {
	w := &writer{out: out, width: width, names: len(r.used())}
	w.summary(r)
	w.requests(r)
	w.latencies(r)
	w.slos(r)
	w.unmeasured(r)
	w.notes(r)
	return w.err
}

// writer writes tables, and keeps the first error.
type writer struct {
	out   io.Writer
	width int
	names int // columns of names, which are the first ones
	err   error
}

func (w *writer) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format+"\n", args...)
	}
}

// table writes rows below a header, and nothing without rows.
func (w *writer) table(header []string, rows [][]string) {
	if len(rows) == 0 || w.err != nil {
		return
	}
	rows = slices.Insert(rows, 0, header)
	w.fit(rows)
	w.line("")
	if w.err == nil {
		w.err = terminal.Table(w.out, rows)
	}
}

// minName is the shortest width that a column of names is cut to.
const minName = 12

// fit cuts names, the longest ones first, until the rows fit.
func (w *writer) fit(rows [][]string) {
	if w.width == 0 {
		return
	}
	total, widths := -terminal.Gap, make([]int, len(rows[0]))
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		total += widths[i] + terminal.Gap
	}
	for ; total > w.width; total-- {
		i := 0
		for other := range w.names {
			if widths[other] > widths[i] {
				i = other
			}
		}
		if w.names == 0 || widths[i] <= minName {
			return
		}
		widths[i]--
		for _, row := range rows {
			row[i] = terminal.Cut(row[i], widths[i])
		}
	}
}

func (w *writer) summary(r *Report) {
	if r.Partial {
		w.line("PART of the files: reading was interrupted.")
	}
	if len(r.Groups) == 0 {
		w.line("No requests with a latency in %s.", terminal.Plural(int64(r.Input.Files), "file"))
		return
	}
	requests, files := terminal.Plural(r.Input.Requests, "request"), terminal.Plural(int64(r.Input.Files), "file")
	if r.Begin.IsZero() {
		w.line("%s in %s, at an unknown time", requests, files)
		return
	}
	w.line("%s in %s, %s to %s (%v)", requests, files,
		r.Begin.UTC().Format(time.RFC3339), r.End.UTC().Format(time.RFC3339), r.Duration().Round(time.Millisecond))
}

func (w *writer) requests(r *Report) {
	outcomes := slices.DeleteFunc(slices.Clone(series.OutcomeNames[:]), func(name string) bool {
		return !slices.ContainsFunc(r.Groups, func(g Group) bool { return g.Outcomes[name].Requests > 0 })
	})
	var rows [][]string
	for i := range r.Groups {
		g := &r.Groups[i]
		row := append(r.cells(g), strconv.FormatUint(g.Requests(), 10))
		for _, name := range outcomes {
			row = append(row, count(float64(g.Outcomes[name].Requests)))
		}
		row = append(row, reported(g.Tokens[names.TokensInput], count), reported(g.Tokens[names.TokensOutput], count),
			r.perSecond(float64(g.Requests())), reported(g.Tokens[names.TokensOutput], r.perSecond))
		rows = append(rows, row)
	}
	header := append(r.titles(), "REQUESTS")
	for _, name := range outcomes {
		header = append(header, strings.ToUpper(name))
	}
	w.table(append(header, "INPUT TOKENS", "OUTPUT TOKENS", "REQUESTS/S", "TOKENS/S"), rows)
}

func (w *writer) latencies(r *Report) {
	var rows [][]string
	for i := range r.Groups {
		g := &r.Groups[i]
		for _, latency := range latencies {
			values := g.Values(latency.id)
			if values.Count() == 0 {
				continue
			}
			q := []float64{0.5, 0.95, 0.99}
			values.Quantiles(q)
			row := append(r.cells(g), latency.title, strconv.FormatUint(values.Count(), 10))
			for _, v := range append(q, values.Max(), values.Sum()/float64(values.Count())) {
				row = append(row, terminal.Duration(v))
			}
			rows = append(rows, row)
		}
	}
	w.table(append(r.titles(), "LATENCY", "N", "p50", "p95", "p99", "MAX", "MEAN"), rows)
}

func (w *writer) slos(r *Report) {
	var rows [][]string
	for i := range r.Groups {
		g := &r.Groups[i]
		for _, name := range slices.Sorted(maps.Keys(g.SLOs)) {
			v, objective, met := g.SLOs[name], "-", "-"
			share, ok := v.Attainment()
			if o := r.objective(name); o > 0 {
				objective = terminal.Percent(o)
				if ok {
					met = map[bool]string{true: "yes", false: "NO"}[share >= o]
				}
			}
			attained := "-"
			if ok {
				attained = terminal.Percent(share)
			}
			rows = append(rows, append(r.cells(g), terminal.Name(name), count(float64(v.Good)), count(float64(v.Bad)), count(float64(v.NotEligible)),
				attained, objective, met, r.perSecond(float64(v.Good))))
		}
	}
	w.table(append(r.titles(), "SLO", "GOOD", "BAD", "NOT ELIGIBLE", "ATTAINED", "OBJECTIVE", "MET", "GOOD/S"), rows)
}

func (w *writer) unmeasured(r *Report) {
	var rows [][]string
	for i := range r.Groups {
		g := &r.Groups[i]
		for _, indicator := range slices.Sorted(maps.Keys(g.Unmeasured)) {
			for _, reason := range slices.Sorted(maps.Keys(g.Unmeasured[indicator])) {
				rows = append(rows, append(r.cells(g), indicator, reason, count(g.Unmeasured[indicator][reason])))
			}
		}
	}
	w.table(append(r.titles(), "MISSING", "REASON", "REQUESTS"), rows)
}

func (w *writer) notes(r *Report) {
	notes := r.Notes()
	if len(notes) > 0 {
		w.line("")
	}
	for _, note := range notes {
		w.line("note: %s", note)
	}
}

// Duration returns the time from the start of the earliest request to the end of the latest.
func (r *Report) Duration() time.Duration { return r.End.Sub(r.Begin) }

// titles returns the columns that identify a group. Attributes that no group has are left out.
func (r *Report) titles() (all []string) {
	for _, name := range r.used() {
		all = append(all, strings.ToUpper(terminal.Name(short(name))))
	}
	return append(all, "VANTAGE")
}

func (r *Report) cells(g *Group) (all []string) {
	for _, name := range r.used() {
		value := terminal.Name(g.Labels[name])
		if g.Overflow {
			value = "(others)"
		}
		all = append(all, value)
	}
	return append(all, terminal.Name(g.Vantage))
}

func (r *Report) used() (all []string) {
	for _, name := range r.By {
		if slices.ContainsFunc(r.Groups, func(g Group) bool { return g.Labels[name] != "" }) {
			all = append(all, name)
		}
	}
	return all
}

func (r *Report) objective(name string) float64 {
	i := slices.IndexFunc(r.SLOs, func(s SLO) bool { return s.Name == name })
	if i < 0 {
		return 0
	}
	return r.SLOs[i].Objective
}

func (r *Report) perSecond(n float64) string {
	if seconds := r.Duration().Seconds(); seconds > 0 {
		return strconv.FormatFloat(n/seconds, 'f', 2, 64)
	}
	return "-"
}

// short returns the last part of an attribute's name that means something alone.
func short(attribute string) string {
	return cmp.Or(map[string]string{
		names.GenAIRequestModel: "model", names.GenAIProviderName: "provider", names.GenAIOperationName: "operation", names.ServiceName: "service",
	}[attribute], attribute)
}

// reported formats a sum, which is 0 if no request reported it.
func reported(n float64, format func(float64) string) string {
	if n == 0 {
		return "-"
	}
	return format(n)
}

func count(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }
