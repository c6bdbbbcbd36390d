// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// measured are the figures that docs/performance.md, docs/scaling.md and docs/operations.md
// state, on which the tables of a fleet depend.
type measured struct {
	microsOf100, microsOf500, microsOf10000 float64 // of CPU per request, a span per request
	microsAlone                             float64 // the same for 100 tokens in an HTTP request of its own
	tapMicros                               float64 // of CPU per token
	tapBytes                                float64 // of an open stream of 500 tokens
	tokensPerSecond                         float64 // of a stream
	streamBytes, tokenBytes                 float64 // of an open stream, and for each of its tokens
	baseMiB, dedupMiB, seriesKB, slosKB     float64 // of token_sli
}

// figure returns the number in the first group of an expression.
func figure(t *testing.T, page, expression string) float64 {
	t.Helper()
	found := regexp.MustCompile(expression).FindStringSubmatch(markdown.Read(t, page))
	require.NotNil(t, found, "%s does not match %s", page, expression)
	value, err := strconv.ParseFloat(strings.ReplaceAll(found[1], ",", ""), 64)
	require.NoError(t, err)
	return value
}

func readMeasured(t *testing.T) measured {
	t.Helper()
	const cell, row = `([\d.,]+) +\| +`, `\| a span per request +\| +`
	skip := func(cells int) string { return strings.Repeat(`[\d.,]+ +\| +`, cells) }
	const performance, scaling, operations = "docs/performance.md", "docs/scaling.md", "docs/operations.md"
	return measured{
		microsOf100:     figure(t, performance, row+skip(1)+cell),
		microsOf500:     figure(t, performance, row+skip(2)+cell),
		microsOf10000:   figure(t, performance, row+skip(3)+cell),
		microsAlone:     1e6 * figure(t, performance, `\| a span per request, each in its own HTTP request +\| +`+cell),
		tapMicros:       figure(t, scaling, "\\| `token_tap`, a chunk per token \\| ([\\d.]+) µs"),
		tapBytes:        1e9 / 20_000 * figure(t, scaling, "\\| `token_tap`.*\\| ([\\d.]+) / [\\d.]+ GB"),
		tokensPerSecond: figure(t, scaling, `Streams of 500 tokens, (\d+) tokens per second each`),
		streamBytes:     figure(t, operations, `\| memory of open streams \| (\d+) bytes per stream`),
		tokenBytes:      figure(t, operations, `bytes per stream and (\d+) bytes per token`),
		baseMiB:         figure(t, operations, `\| spans, exporter \| (\d+) MiB`),
		dedupMiB:        figure(t, operations, `and (\d+) MiB for deduplication`),
		seriesKB:        figure(t, operations, `\| spans, exporter \| \d+ MiB \| (\d+) kB`),
		slosKB:          figure(t, operations, `\| spans, exporter \| \d+ MiB \| \d+ kB \| (\d+) kB`),
	}
}

// microsOf returns the CPU time of a request, linear between the measured lengths.
func (m measured) microsOf(tokens float64) float64 {
	if tokens <= 500 {
		return m.microsOf100 + (m.microsOf500-m.microsOf100)*(tokens-100)/400
	}
	return m.microsOf500 + (m.microsOf10000-m.microsOf500)*(tokens-500)/9500
}

// collectors shows how many Collectors of two cores have half of them in reserve, and the
// cores.
func collectors(micros float64) string {
	cores := 2 * micros / 1e6
	shown := thousands(int(math.Round(cores)))
	switch {
	case cores < 0.1:
		shown = "< 0.1"
	case cores < 9.95:
		shown = fmt.Sprintf("%.1f", cores)
	}
	return fmt.Sprintf("%s (%s)", thousands(max(2, int(math.Ceil(cores/2)))), shown)
}

// memory shows bytes with two digits.
func memory(bytes float64) string {
	unit, value := "kB", bytes/1e3
	for _, larger := range []string{"MB", "GB"} {
		if value >= 995 {
			unit, value = larger, value/1e3
		}
	}
	if value < 9.95 {
		return fmt.Sprintf("%.1f %s", value, unit)
	}
	return fmt.Sprintf("%.0f %s", value, unit)
}

func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// fleetTable is by requests per second and tokens of a request.
func fleetTable(m measured) string {
	var table strings.Builder
	table.WriteString("| requests per second | tokens each | `token_stream` | `token_tap` | open streams | their memory, `token_stream` | `token_tap` |\n" +
		"|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, requests := range []int{10, 100, 1000, 10_000} {
		for _, tokens := range []int{100, 500, 2000} {
			rate, length := float64(requests), float64(tokens)
			open := rate * length / m.tokensPerSecond
			fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s | %s |\n", thousands(requests), thousands(tokens),
				collectors(rate*(m.microsAlone+m.microsOf(length)-m.microsOf100)),
				collectors(rate*length*m.tapMicros),
				thousands(int(open)), memory(open*(m.streamBytes+m.tokenBytes*length)), memory(open*m.tapBytes))
		}
	}
	return table.String()
}

// seriesTable is by series of one Collector.
func seriesTable(m measured) string {
	var table strings.Builder
	table.WriteString("| series | no objective | two objectives each |\n|---:|---:|---:|\n")
	for _, series := range []int{100, 500, 2000, 10_000} {
		needed := func(objectives float64) string {
			return memory((m.baseMiB+m.dedupMiB)*(1<<20) + float64(series)*(m.seriesKB+objectives*m.slosKB)*1000)
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", thousands(series), needed(0), needed(2))
	}
	return table.String()
}

// New measurements change the tables: -update rewrites them.
func TestSizing_TablesFollowFromTheMeasuredFigures(t *testing.T) {
	m := readMeasured(t)
	testenv.RequireTables(t, "docs/operations.md", map[string]string{"fleet": fleetTable(m), "memory by series": seriesTable(m)})
}
