// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"math"
	"strings"
	"text/template"
)

//go:embed performance.svg.tmpl
var plotTemplate string

// plotPoint is a point in pixels. The axes are at 70 to 570 and at 385 to 50.
type plotPoint struct {
	X, Y  int
	Label string
}

type plotLine struct {
	Color  string
	Points []plotPoint
}

func (l plotLine) Last() plotPoint { return l.Points[len(l.Points)-1] }

// plot returns an SVG of the CPU time per request by the length of the answer. Both axes
// are logarithmic.
func (r results) plot() (string, error) {
	low, high := math.Inf(1), math.Inf(-1) // powers of ten of nanoseconds
	for _, load := range fixedLoads {
		low = min(low, math.Floor(math.Log10(r.cost(load, wire))))
		high = max(high, math.Ceil(math.Log10(r.cost(load, spanmetrics))))
	}
	point := func(tokens, nanos float64, label string) plotPoint {
		right, up := (math.Log10(tokens)-1)/3, (math.Log10(nanos)-low)/(high-low)
		return plotPoint{70 + int(math.Round(500*right)), 385 - int(math.Round(335*up)), label}
	}
	var costs, lengths []plotPoint
	for power := low; power <= high; power++ {
		label := []string{"10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"}[int(power)-1]
		costs = append(costs, point(10, math.Pow(10, power), label))
	}
	for power, label := range []string{"10", "100", "1,000", "10,000"} {
		lengths = append(lengths, point(math.Pow(10, float64(power+1)), 1, label))
	}
	var lines []plotLine
	for _, line := range []struct{ kind, color, label string }{
		{wire, "wire", "metrics from the wire"}, {everySpan, "span", "a span per request"}, {nop, "nop", "otlp → nop"}, {spanmetrics, "spanmetrics", "otlp → spanmetrics"},
	} {
		drawn := plotLine{Color: line.color}
		for i, load := range fixedLoads {
			drawn.Points = append(drawn.Points, point([]float64{10, 100, 500, 10_000}[i], r.cost(load, line.kind), line.label))
		}
		lines = append(lines, drawn)
	}
	parsed, err := template.New("plot").Parse(plotTemplate)
	if err != nil {
		return "", err
	}
	var svg strings.Builder
	err = parsed.Execute(&svg, map[string]any{"costs": costs, "lengths": lengths, "lines": lines})
	return svg.String(), err
}
