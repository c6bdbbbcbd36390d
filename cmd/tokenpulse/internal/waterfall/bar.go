// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package waterfall

import (
	"math"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/request"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// What a bar is made of.
const (
	markOther    = '─'
	markNetwork  = '┄'
	markQueue    = '░'
	markPrefill  = '▒'
	markTransfer = '╌'
	markDecode   = '▓'
	markStall    = '×'
	markFirst    = '◆'
)

// legend explains the marks, in this order.
var legend = [...]struct {
	mark rune
	text string
}{
	{markNetwork, "network"},
	{markQueue, "queue"},
	{markPrefill, "prefill"},
	{markTransfer, "transfer"},
	{markFirst, "first token"},
	{markDecode, "decode"},
	{markStall, "no token: a stall, or until the end"},
	{markOther, "other time"},
}

// bar is a line of the picture, as wide as its axis.
type bar struct {
	axis  *axis
	marks []rune
}

func newBar(a *axis) *bar { return &bar{a, []rune(strings.Repeat(" ", a.columns))} }

// paint marks the columns that hold a part of an interval.
func (b *bar) paint(from, to time.Duration, mark rune) {
	if from >= to {
		return
	}
	first, _ := b.axis.column(from)
	_, end := b.axis.column(to)
	for column := first; column < max(end, first+1); column++ {
		b.marks[column] = mark
	}
}

// barOf returns the bar of a span. Later paint is on top.
func barOf(s *span, r *request.Request, a *axis) *bar {
	b := newBar(a)
	column, _ := a.column(s.begin)
	b.marks[column] = markOther
	b.paint(s.begin, s.end, markOther)
	if r == nil {
		return b
	}
	first, known := firstToken(r)
	if known {
		network := duration(r.Value(numbers.NetworkDuration))
		queue := network + duration(r.Value(numbers.QueueDuration))
		b.paint(s.begin, s.begin+min(network, first), markNetwork)
		b.paint(s.begin+network, s.begin+min(queue, first), markQueue)
		prefill := first - transferBefore(r, first-queue)
		b.paint(s.begin+queue, s.begin+prefill, markPrefill)
		b.paint(s.begin+prefill, s.begin+first, markTransfer)
		b.paint(s.begin+first, s.begin+first+decodeOf(r, first), markDecode)
	}
	if chunks := r.Chunks; chunks != nil {
		for _, i := range chunks.Stalled {
			b.paint(s.begin+chunks.At[i-1], s.begin+chunks.At[i], markStall)
		}
	}
	b.paint(s.end-min(duration(r.OpenTail()), s.end-s.begin), s.end, markStall)
	if known {
		column, _ = a.column(s.begin + first)
		b.marks[column] = markFirst
	}
	return b
}

// firstToken returns when the first token came: as measured, or else after the phases that an engine reports.
func firstToken(r *request.Request) (time.Duration, bool) {
	prefill := r.Value(numbers.PrefillDuration)
	switch first := r.Value(numbers.TimeToFirstToken); {
	case !math.IsNaN(first):
		return duration(first), true
	case r.Chunks != nil && len(r.Chunks.At) > 0:
		return r.Chunks.At[0], true
	case !math.IsNaN(prefill):
		return duration(r.Value(numbers.QueueDuration)) + duration(prefill), true
	}
	return 0, false
}

// transferBefore returns the transfer between two engines, if it fits into the time after the queue beside prefill. An
// engine that only does prefill sends the cache after its token.
func transferBefore(r *request.Request, afterQueue time.Duration) time.Duration {
	transfer := duration(r.Value(numbers.TransferDuration))
	if duration(r.Value(numbers.PrefillDuration))+transfer > afterQueue {
		return 0
	}
	return transfer
}

// decodeOf returns the decode of a request, or 0 if it is unknown.
func decodeOf(r *request.Request, first time.Duration) time.Duration {
	decode := r.Value(numbers.DecodeDuration)
	if math.IsNaN(decode) && r.Chunks != nil && len(r.Chunks.At) > 0 {
		return r.Chunks.At[len(r.Chunks.At)-1] - first
	}
	return duration(decode)
}

// duration converts seconds, of which unknown ones are 0. Spans hold numbers of any size.
func duration(seconds float64) time.Duration {
	const longest = float64(1 << 31) // 68 years
	if math.IsNaN(seconds) {
		return 0
	}
	return time.Duration(math.Round(min(seconds, longest) * float64(time.Second)))
}

// levels are the heights of a column of tokens.
var levels = []rune("▁▂▃▄▅▆▇█")

// tokensOf returns a line with the tokens that arrived in the time of each column, relative to the most.
func tokensOf(s *span, r *request.Request, a *axis) *bar {
	tokens, most := make([]uint64, a.columns), uint64(0)
	for i, at := range r.Chunks.At {
		column, _ := a.column(s.begin + at)
		tokens[column] += uint64(r.Chunks.Tokens[i])
		most = max(most, tokens[column])
	}
	b := newBar(a)
	for column, n := range tokens {
		if n > 0 {
			b.marks[column] = levels[(n*uint64(len(levels))+most-1)/most-1]
		}
	}
	return b
}
