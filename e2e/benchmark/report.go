// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

var (
	fixedLoads = []string{tokens10, tokens100, tokens500, tokens10000}
	mainLoads  = append(fixedLoads[:4:4], code, conversation)
)

// matrix returns a table with a row per kind of path and a column per load.
func matrix(corner string, kinds, loads []string, cell func(load, kind string) string) string {
	var rows [][]string
	for _, kind := range kinds {
		row := []string{kind}
		for _, load := range loads {
			row = append(row, cell(load, kind))
		}
		rows = append(rows, row)
	}
	return table(append([]string{corner}, loads...), rows)
}

// micros returns the CPU time per request in microseconds.
func (r results) micros(load, kind string) string { return number(r.cost(load, kind) / 1000) }

// ratio returns the CPU time of the path than, divided by that of the path kind.
func (r results) ratio(load, kind, than string) string {
	return number(median(ratio{load, kind, than}.each(r)))
}

func (r results) costTable() string {
	return matrix("CPU time per request, µs", mainKinds, mainLoads, r.micros)
}

// growth returns the cost of a request without its tokens, and of each token: the line
// through the costs at 10 and 500 tokens.
func (r results) growth(kind string) (request, token float64) {
	token = (r.cost(tokens500, kind) - r.cost(tokens10, kind)) / (500 - 10)
	return r.cost(tokens10, kind) - 10*token, token
}

func (r results) growthTable() string {
	var rows [][]string
	for _, kind := range mainKinds {
		request, token := r.growth(kind)
		rows = append(rows, []string{kind, number(request / 1000), number(token)})
	}
	return table([]string{"", "each request, µs", "each token, ns"}, rows)
}

// coresNeededTable shows what a number of requests per second costs, in batches and alone.
func (r results) coresNeededTable() string {
	var rows [][]string
	for _, kind := range []string{wire, everySpan, nop, spanmetrics} {
		for _, load := range []struct{ name, sent string }{{conversation, "100 in each HTTP request"}, {alone, "each in its own HTTP request"}} {
			row := []string{kind + ", " + load.sent}
			for _, perSecond := range []float64{1, 100, 100_000} {
				row = append(row, cores(perSecond*r.cost(load.name, kind)/1e9))
			}
			rows = append(rows, row)
		}
	}
	return table([]string{"cores for requests per second", "1", "100", "100,000"}, rows)
}

// cores formats a number of cores, which may be very small, with two digits.
func cores(value float64) string {
	return fmt.Sprintf("%.*f", max(0, 1-int(math.Floor(math.Log10(value)))), value)
}

// ratioTable compares paths with others.
func (r results) ratioTable() string {
	compared := map[string]ratio{}
	var rows []string
	for _, pair := range []ratio{
		{kind: wire, than: nop},
		{kind: wireSpans, than: nop},
		{kind: everySpan, than: nop},
		{kind: wireGRPC, than: nopGRPC},
		{kind: wireNDJSON, than: nop},
		{kind: wire, than: spanmetrics},
		{kind: everySpan, than: spanmetrics},
	} {
		name := pair.than + " / " + pair.kind
		rows, compared[name] = append(rows, name), pair
	}
	return matrix("ratio of CPU times", rows, fixedLoads, func(load, row string) string {
		return r.ratio(load, compared[row].kind, compared[row].than)
	})
}

// variationTable shows what makes a request more expensive.
func (r results) variationTable() string {
	var rows [][]string
	for _, v := range []struct {
		load, kind, than, plain string
	}{
		{tokens10, wire, nop, tokens10},
		{uniqueValues, wire, nop, tokens10},
		{tokens10, wireSLOs, nop, tokens10},
		{tokens500, wire, nop, tokens500},
		{manySeries, wireSeries, nop, tokens500},
		{inParts, wire, nop, tokens500},
		{inParts, wireGRPC, nopGRPC, tokens500},
		{inParts, wireStream, nopGRPC, tokens500},
	} {
		rows = append(rows, []string{
			v.load + ": " + v.kind, r.micros(v.load, v.kind), number(r.cost(v.load, v.kind) / r.cost(v.plain, wire)), r.ratio(v.load, v.kind, v.than),
		})
	}
	return table([]string{"", "CPU time per request, µs", "of the plain request", "`nop` / this"}, rows)
}

// withoutReceiving returns what a span costs in each round beyond receiving it.
func (r results) withoutReceiving(kind, receiving string) (nanos []float64) {
	received := r.nanos(key{foreignSpans, receiving})
	for round, whole := range r.nanos(key{foreignSpans, kind}) {
		nanos = append(nanos, whole-received[round])
	}
	return nanos
}

func (r results) foreignTable() string {
	var rows [][]string
	for _, kinds := range [][2]string{{foreign, nop}, {spanmetrics, peerNop}} {
		beyond := median(r.withoutReceiving(kinds[0], kinds[1]))
		rows = append(rows, []string{kinds[0], number(r.cost(foreignSpans, kinds[0]) / 1000), number(beyond / 1000)})
	}
	return table([]string{"CPU time per span, µs", "whole process", "without receiving it"}, rows)
}

// foreignRatio returns how many times more tokenpulse takes than spanmetrics, without
// receiving the spans.
func (r results) foreignRatio() string {
	peer, ratios := r.withoutReceiving(spanmetrics, peerNop), []float64(nil)
	for round, nanos := range r.withoutReceiving(foreign, nop) {
		ratios = append(ratios, nanos/peer[round])
	}
	return number(median(ratios)) + " (" + spread(ratios) + ")"
}

func (r results) scrapeTable() string {
	var rows [][]string
	for _, kind := range []string{scrapeSLI, scrapePeer, scrapeSLIText, scrapePeerText} {
		rows = append(rows, []string{kind, number(r.cost(scrapes, kind) / 1000)})
	}
	return table([]string{"", "CPU time per histogram, µs"}, rows)
}

// wireTable shows the sizes of the encodings. They are the same in each run.
func wireTable() string {
	var rows [][]string
	for _, encoding := range []struct{ name, kind string }{
		{"`token_stream`, protobuf", wire}, {"`token_stream`, NDJSON", wireNDJSON}, {"OTLP span events, protobuf", nop},
	} {
		row := []string{encoding.name}
		for _, l := range loads[:len(fixedLoads)] {
			row = append(row, number(float64(len(kinds[encoding.kind].encode(l.streams("request-0", 0), 0, 1)))/float64(l.tokens())))
		}
		rows = append(rows, row)
	}
	return table(append([]string{"bytes per token, uncompressed"}, fixedLoads...), rows)
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
	return table([]string{"", "CPU time, ns", "min .. max", "peak RSS, MiB"}, rows)
}

// table returns a Markdown table. Columns are padded; the first is aligned to the left,
// the others to the right.
func table(header []string, rows [][]string) string {
	rule := make([]string, len(header))
	widths := make([]int, len(header))
	for column := range header {
		for _, row := range append([][]string{header}, rows...) {
			widths[column] = max(widths[column], utf8.RuneCountInString(row[column]), 3)
		}
		rule[column] = strings.Repeat("-", widths[column])
		if column > 0 {
			rule[column] = rule[column][1:] + ":"
		}
	}
	var text strings.Builder
	for _, row := range append([][]string{header, rule}, rows...) {
		for column, cell := range row {
			padding := strings.Repeat(" ", widths[column]-utf8.RuneCountInString(cell))
			if column > 0 {
				cell, padding = padding+cell, ""
			}
			text.WriteString("| " + cell + padding + " ")
		}
		text.WriteString("|\n")
	}
	return text.String()
}

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
