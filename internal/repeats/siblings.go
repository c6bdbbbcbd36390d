// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package repeats

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// slack is how far a call may reach beyond its sibling of the same request.
const slack = pcommon.Timestamp(10 * time.Millisecond)

// likeness is what siblings of one request have in common: their parent and the ID of the response, or the tokens.
type likeness struct {
	trace         pcommon.TraceID
	parent        pcommon.SpanID
	response      string
	input, output int64
}

// maxRivals is the number of calls after a call that it is compared with. More that are alike are parallel samples.
const maxRivals = 16

// findSiblings joins calls with the same parent that ran at the same time.
func (f *finder) findSiblings() {
	alike := map[likeness][]int{}
	for i := range f.calls {
		c := &f.calls[i]
		like := likeness{trace: c.Span.TraceID(), parent: c.Span.ParentSpanID()}
		if c.response != "" {
			like.response = c.response
			alike[like] = append(alike[like], i)
		}
		if c.input != unknown && c.output != unknown {
			like.response, like.input, like.output = "", c.input, c.output
			alike[like] = append(alike[like], i)
		}
	}
	for like, calls := range alike {
		if len(calls) > 1 && like.response != "" {
			f.pair(calls, false)
		}
	}
	for like, calls := range alike {
		if len(calls) > 1 && like.response == "" {
			f.pair(calls, true)
		}
	}
}

// pair joins calls that are alike and ran at the same time. If onlyRivals, it joins two calls only if neither could be the
// repeat of a further call of the other's scope: nothing says which of several samples a call repeats.
func (f *finder) pair(calls []int, onlyRivals bool) {
	slices.SortStableFunc(calls, func(i, j int) int {
		return cmp.Compare(f.calls[i].Span.StartTimestamp(), f.calls[j].Span.StartTimestamp())
	})
	rivals := make([][]int, len(calls))
	crowded := make([]bool, len(calls))
	for at, i := range calls {
		a := &f.calls[i]
		for next := at + 1; next < len(calls) && f.calls[calls[next]].Span.StartTimestamp() <= a.Span.EndTimestamp()+slack; next++ {
			if next-at > maxRivals {
				crowded[at], crowded[next] = true, true
				break
			}
			b := &f.calls[calls[next]]
			if (a.within(b) || b.within(a)) && a.sameRequest(b, false) && f.sameObserver(i, calls[next]) {
				rivals[at], rivals[next] = append(rivals[at], next), append(rivals[next], at)
			}
		}
	}
	only := func(at, rival int) bool {
		scope := f.calls[calls[rival]].Scope
		return !crowded[at] && !slices.ContainsFunc(rivals[at], func(other int) bool {
			return other != rival && f.calls[calls[other]].Scope == scope
		})
	}
	for at := range calls {
		for _, rival := range rivals[at] {
			if rival > at && (!onlyRivals || only(at, rival) && only(rival, at)) {
				f.join(calls[at], calls[rival])
			}
		}
	}
}
