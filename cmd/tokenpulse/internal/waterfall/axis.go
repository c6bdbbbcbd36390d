// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package waterfall

import (
	"math/bits"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
)

// axis maps times to columns.
type axis struct {
	begin   time.Duration // since 1970
	length  time.Duration
	columns int
}

// axis returns that of all spans and their tokens.
func (t *Trace) axis(columns int) axis {
	a := axis{columns: columns}
	end, any := time.Duration(0), false
	for _, s := range t.spans {
		if !s.timed {
			continue
		}
		if !any || s.begin < a.begin {
			a.begin = s.begin
		}
		any, end = true, max(end, s.end)
		if r := t.requests[s.key]; r != nil && r.Chunks != nil && len(r.Chunks.At) > 0 {
			end = max(end, s.begin+r.Chunks.At[len(r.Chunks.At)-1]) // it may be after the end of the span
		}
	}
	a.length = end - a.begin
	return a
}

// column returns the column that holds a time, and the first column that begins at that time or later.
func (a *axis) column(at time.Duration) (holds, from int) {
	at -= a.begin
	switch {
	case at < 0 || a.length == 0:
		return 0, 0
	case at >= a.length:
		return a.columns - 1, a.columns
	}
	high, low := bits.Mul64(uint64(at), uint64(a.columns))
	whole, rest := bits.Div64(high, low, uint64(a.length))
	holds = int(whole)
	if rest > 0 {
		return holds, holds + 1
	}
	return holds, holds
}

// minTick is the least distance of two ticks in columns.
const minTick = 10

// ticks returns a line with the time at round values, each behind a bar at its column.
func (a *axis) ticks() string {
	line := []rune(strings.Repeat(" ", a.columns))
	if a.length == 0 {
		return "|0s"
	}
	step := a.step()
	for at := time.Duration(0); at >= 0 && at <= a.length; at += step {
		column, _ := a.column(a.begin + at)
		label := []rune("|" + terminal.Duration(at.Seconds()))
		if at == 0 {
			label = []rune("|0")
		}
		if column+len(label) <= a.columns {
			copy(line[column:], label)
		}
	}
	return strings.TrimRight(string(line), " ")
}

// step returns the least of 1, 2 or 5 times a power of ten, in nanoseconds, that is minTick columns apart.
func (a *axis) step() time.Duration {
	for power := time.Duration(1); ; power *= 10 {
		for _, step := range [...]time.Duration{power, 2 * power, 5 * power} {
			if float64(step)*float64(a.columns) >= minTick*float64(a.length) || step > 1<<60 {
				return step
			}
		}
	}
}
