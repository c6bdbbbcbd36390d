// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

var (
	fixedLoads = []string{tokens10, tokens100, tokens500, tokens10000}
	mainLoads  = append(fixedLoads[:4:4], code, conversation)
)

// micros returns the CPU time per request in microseconds. Spans of 1% cost more than none, so a
// difference within the noise is marked.
func (r results) micros(load, kind string) string {
	return r.mark(kind == wireSpans, key{load, kind}, key{load, wire}) + number(r.cost(load, kind)/1000)
}

// mark returns the mark of a number whose difference from another one is within the noise: the rounds of
// both overlap.
func (r results) mark(compared bool, one, other key) string {
	a, b := r.nanos(one), r.nanos(other)
	if compared && one != other && slices.Min(a) <= slices.Max(b) && slices.Min(b) <= slices.Max(a) {
		return "≈ "
	}
	return ""
}

// ratio returns the CPU time of the path than, divided by that of the path kind.
func (r results) ratio(load, kind, than string) string {
	return number(median(ratio{load, kind, than}.each(r)))
}

// more returns how many times as much as one of a plain load a request takes.
func (r results) more(load, kind, plain string) string {
	return r.mark(true, key{load, kind}, key{plain, wire}) + number(r.cost(load, kind)/r.cost(plain, wire))
}

// cores returns with two digits the number of cores for a rate of requests, which may be very small.
func (r results) cores(load, kind string, perSecond int) string {
	cores := float64(perSecond) * r.cost(load, kind) / 1e9
	return fmt.Sprintf("%.*f", max(0, 1-int(math.Floor(math.Log10(cores)))), cores)
}

// withoutReceiving returns what a span costs in each round beyond receiving it.
func (r results) withoutReceiving(kind, receiving string) (nanos []float64) {
	received := r.nanos(key{foreignSpans, receiving})
	for round, whole := range r.nanos(key{foreignSpans, kind}) {
		nanos = append(nanos, whole-received[round])
	}
	return nanos
}

// bytesPerToken returns the size of an encoding. It is the same in each run.
func bytesPerToken(name, kind string) string {
	for _, l := range loads {
		if l.name == name {
			return number(float64(len(kinds[kind].encode(l.streams("request-0", 0), 0, 1))) / float64(l.tokens()))
		}
	}
	return ""
}

// detailTable shows all measurements.
func (r results) detailTable(groups [][]*path) string {
	var rows [][]string
	for _, group := range groups {
		for _, p := range group {
			var memory []float64
			for _, m := range r[p.key] {
				memory = append(memory, m.memory/(1<<20))
			}
			nanos := r.nanos(p.key)
			rows = append(rows, []string{p.String(), number(median(nanos)), spread(nanos), number(median(memory))})
		}
	}
	return aligned(table([]string{"", "CPU time, ns", "min .. max", "peak RSS, MiB"}, rows))
}

// table returns a Markdown table, which aligned completes.
func table(header []string, rows [][]string) string {
	var text strings.Builder
	for _, row := range append([][]string{header}, rows...) {
		text.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	return text.String()
}

// aligned pads the columns of the tables in a text, and puts a rule below their headers. The
// first column is aligned to the left, the others to the right.
func aligned(text string) string {
	return tables.ReplaceAllStringFunc(text, func(table string) string {
		var rows [][]string
		widths := map[int]int{}
		for line := range strings.Lines(table) {
			row := strings.Split(strings.Trim(line, "|\n"), "|")
			for column := range row {
				row[column] = strings.TrimSpace(row[column])
				widths[column] = max(widths[column], utf8.RuneCountInString(row[column]), 3)
			}
			rows = append(rows, row)
		}
		rule := make([]string, len(rows[0]))
		for column := range rule {
			rule[column] = strings.Repeat("-", widths[column]-min(column, 1)) + strings.Repeat(":", min(column, 1))
		}
		var text strings.Builder
		for _, row := range slices.Insert(rows, 1, rule) {
			for column, cell := range row {
				fmt.Fprintf(&text, "| %*s ", widths[column]*(2*min(column, 1)-1), cell)
			}
			text.WriteString("|\n")
		}
		return text.String()
	})
}

var tables = regexp.MustCompile(`(?m:^\|.*\n)+`)

// median returns the middle value, or the mean of the two middle values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

func spread(values []float64) string {
	return number(slices.Min(values)) + " .. " + number(slices.Max(values))
}

// number formats a number with about three significant digits.
func number(value float64) string {
	switch magnitude := math.Abs(value); {
	case magnitude < 10:
		return fmt.Sprintf("%.2f", value)
	case magnitude < 100:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.0f", value)
	}
}
