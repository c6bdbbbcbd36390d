// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package repeats

import (
	"cmp"
	"slices"
)

// Repeat is a call that does not count.
type Repeat struct {
	// Call and Counts are the indices of this call and of the one that counts in its place.
	Call, Counts int
	// Sum is set for a call that stands for several requests below it, with a Repeat for each. Its usage is that of all.
	Sum bool
}

// Find returns the calls of a batch that repeat the request of another one. Of the calls of one request, the one with most
// timing counts; of several, the innermost. Repeats of one call begin with the one that would count next. Calls of a single
// scope have none.
func Find(calls []Call) []Repeat {
	f := newFinder(calls)
	f.findSiblings()
	f.findNested()
	return f.repeats()
}

// finder joins calls into groups of one request.
type finder struct {
	calls  []call
	groups []*group // by call
	equal  map[[2]int]bool
}

// group holds the calls of one request, each of another scope.
type group struct {
	members []int
	over    []int // calls of several requests below, which count in place of all members
}

// maxMembers and maxDepth bound the work for hostile traces. Calls that are each other's parents have the largest depth.
const (
	maxMembers = 8
	maxDepth   = 64
)

func newFinder(calls []Call) *finder {
	f := &finder{calls: make([]call, len(calls)), groups: make([]*group, len(calls)), equal: map[[2]int]bool{}}
	for i := range calls {
		f.calls[i] = newCall(&calls[i])
		for above := calls[i].Above; above != None && f.calls[i].depth < maxDepth; above = calls[above].Above {
			f.calls[i].depth++
		}
		f.groups[i] = &group{members: []int{i}}
	}
	return f
}

// findNested joins each call with the one above it, the innermost first. It leaves out calls of the largest depth, so that
// a call never counts for itself.
func (f *finder) findNested() {
	below := make([][]int, len(f.calls))
	order := make([]int, len(f.calls))
	for i := range f.calls {
		order[i] = i
		if above := f.calls[i].Above; above != None && f.calls[i].depth < maxDepth && f.calls[i].Scope != f.calls[above].Scope && f.sameObserver(i, above) {
			below[above] = append(below[above], i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return f.calls[b].depth - f.calls[a].depth })
	for _, outer := range order {
		switch inner := f.requestsOf(below[outer]); {
		case len(inner) == 1 && f.calls[outer].sameRequest(&f.calls[inner[0]], true):
			f.join(outer, inner[0])
		case len(inner) > 1 && f.sums(outer, inner):
			f.groups[outer].over = inner
		}
	}
}

// requestsOf returns one call of each request of the calls: the one that reports most of its response, so that it can be compared.
func (f *finder) requestsOf(calls []int) (of []int) {
	seen := map[*group]int{}
	for _, i := range calls {
		at, known := seen[f.groups[i]]
		if !known {
			seen[f.groups[i]] = len(of)
			of = append(of, i)
		} else if f.calls[i].reported() > f.calls[of[at]].reported() {
			of[at] = i
		}
	}
	return of
}

// reported returns how much of its response a call reports.
func (c *call) reported() (n int) {
	if c.response != "" {
		n += 2
	}
	if c.output != unknown {
		n++
	}
	return n
}

// sums reports whether a call stands for several calls below it: it has the response or the tokens of one of them, or the
// tokens of all.
func (f *finder) sums(outer int, inner []int) bool {
	own := &f.calls[outer]
	sum, complete, one, sameModel, conflicts := int64(0), true, false, false, true
	for _, i := range inner {
		c := &f.calls[i]
		if own.response != "" && own.response == c.response {
			return true
		}
		conflicts = conflicts && own.conflicts(c)
		sameModel = sameModel || own.sameModel(c, true)
		one = one || c.output == own.output
		sum, complete = sum+max(c.output, 0), complete && c.output != unknown
	}
	return !conflicts && sameModel && (own.output == unknown || one || sum == own.output || !complete && sum <= own.output)
}

// join makes one group of the groups of two calls, unless both have calls of one scope or responses that differ.
func (f *finder) join(i, j int) {
	a, b := f.groups[i], f.groups[j]
	if a == b || len(a.members)+len(b.members) > maxMembers {
		return
	}
	for _, m := range a.members {
		for _, n := range b.members {
			if f.calls[m].Scope == f.calls[n].Scope || f.calls[m].conflicts(&f.calls[n]) {
				return
			}
		}
	}
	a.members, a.over = append(a.members, b.members...), append(a.over, b.over...)
	for _, m := range b.members {
		f.groups[m] = a
	}
}

// sameObserver reports whether two calls have the same vantage and resource. It compares the attributes of resources:
// groupbytrace sends a resource of its own for each scope.
func (f *finder) sameObserver(i, j int) bool {
	a, b := &f.calls[i], &f.calls[j]
	if a.vantage != b.vantage || a.Resource == b.Resource {
		return a.vantage == b.vantage
	}
	pair := [2]int{min(a.Resource, b.Resource), max(a.Resource, b.Resource)}
	equal, known := f.equal[pair]
	if !known {
		equal = a.Of.Len() <= maxAttributes && a.Of.Equal(b.Of)
		f.equal[pair] = equal
	}
	return equal
}

// maxAttributes is the number of attributes of a resource up to which it is compared, which takes its square.
const maxAttributes = 128

// repeats returns the calls that do not count.
func (f *finder) repeats() (all []Repeat) {
	for i, g := range f.groups {
		if len(g.members) == 1 && len(g.over) == 0 || slices.Min(g.members) != i {
			continue
		}
		slices.SortFunc(g.members, f.compare)
		for _, m := range g.members {
			for _, below := range g.over {
				all = append(all, Repeat{Call: m, Counts: f.counting(below), Sum: true})
			}
			if len(g.over) == 0 && m != g.members[0] {
				all = append(all, Repeat{Call: m, Counts: g.members[0]})
			}
		}
	}
	return all
}

// counting returns the call that counts for the request of a call.
func (f *finder) counting(i int) int {
	for range maxDepth {
		g := f.groups[i]
		if len(g.over) == 0 {
			return slices.MinFunc(g.members, f.compare)
		}
		i = g.over[0]
	}
	return i
}

// compare orders calls of one request. The first one counts.
func (f *finder) compare(i, j int) int {
	a, b := &f.calls[i], &f.calls[j]
	return cmp.Or(
		cmp.Compare(b.timing, a.timing), cmp.Compare(b.depth, a.depth),
		cmp.Compare(a.Span.EndTimestamp()-a.Span.StartTimestamp(), b.Span.EndTimestamp()-b.Span.StartTimestamp()), cmp.Compare(i, j),
	)
}
