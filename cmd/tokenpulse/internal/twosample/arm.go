// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Limits of an Arm. Runs and replicas beyond them count as a part of others, SLOs beyond them do not count.
const (
	maxBlocks   = 64
	maxRuns     = 32
	maxReplicas = 64
	maxSLOs     = 64
)

// Arm is one side of a comparison: sums of its requests by blocks of time and by replicas. Its memory has a limit, whatever
// the number of requests. The zero value is empty and ready to use. An Arm is not safe for concurrent use.
type Arm struct {
	requests uint64
	folded   uint64

	runNames, replicaNames, sloNames table

	runs     []run
	replicas []*group
	blocks   map[blockKey]*group
	width    time.Duration // of blocks: a microsecond times a power of two
	sample   sample
}

// run is what is known of a run besides its blocks.
type run struct {
	first, last time.Time // of a start, and of an end
	busy        float64   // sum of the durations in seconds
	requests    uint64
}

// blockKey identifies a block: it holds the starts from index times the width on.
type blockKey struct {
	run   int
	index int64
}

func (k blockKey) compare(other blockKey) int {
	return cmp.Or(cmp.Compare(k.run, other.run), cmp.Compare(k.index, other.index))
}

// Requests returns the number of requests.
func (a *Arm) Requests() uint64 { return a.requests }

// SLOs returns the names of the SLOs that a request was eligible for, sorted.
func (a *Arm) SLOs() []string { return slices.Sorted(slices.Values(a.sloNames.names)) }

// Folded returns how many times a limit was reached: by requests of a run or replica that counts as a part of another one, and
// by verdicts that do not count.
func (a *Arm) Folded() uint64 { return a.folded }

// Add adds a request.
func (a *Arm) Add(r *Request) {
	index, start := a.run(r.Run), r.Start
	run := &a.runs[index]
	duration := 0.0
	if d := r.Values[RequestDuration]; d >= 0 && d < maxSeconds {
		duration = d
	}
	if start.IsZero() {
		start = time.UnixMilli(int64(run.requests))
	} else {
		run.cover(start, start.Add(time.Duration(duration*float64(time.Second))))
	}
	run.requests++
	run.busy += duration
	a.requests++
	a.sample.add(r)
	band := bandOf(r.PromptTokens)
	a.block(index, start).band(band).add(r, a.slo)
	a.replica(r.Replica).band(band).add(r, a.sloNames.find)
}

// maxSeconds is longer than any request.
const maxSeconds = 1e8

func (r *run) cover(first, last time.Time) {
	if r.first.IsZero() || first.Before(r.first) {
		r.first = first
	}
	if last.After(r.last) {
		r.last = last
	}
}

// run returns the number of a run.
func (a *Arm) run(name string) int {
	i, folded := a.runNames.folding(name, maxRuns)
	if folded {
		a.folded++
	} else if i == len(a.runs) {
		a.runs = append(a.runs, run{})
	}
	return i
}

// replica returns the sums of a replica.
func (a *Arm) replica(name string) *group {
	i, folded := a.replicaNames.folding(name, maxReplicas)
	if folded {
		a.folded++
	} else if i == len(a.replicas) {
		a.replicas = append(a.replicas, &group{})
	}
	return a.replicas[i]
}

// slo returns the number of an SLO, or -1 beyond the limit.
func (a *Arm) slo(name string) int {
	i := a.sloNames.add(name, maxSLOs)
	if i < 0 {
		a.folded++
	}
	return i
}

// block returns the block of a time.
func (a *Arm) block(run int, start time.Time) *group {
	if a.blocks == nil {
		a.blocks, a.width = map[blockKey]*group{}, time.Microsecond
	}
	for {
		key := blockKey{run, nanoseconds(start) / int64(a.width)}
		g := a.blocks[key]
		if g == nil && len(a.blocks) < maxBlocks {
			g = &group{}
			a.blocks[key] = g
		}
		if g != nil {
			return g
		}
		a.widen(2 * a.width)
	}
}

// nanoseconds returns the time since 1970, and at most 2^63 - 1: two of the widest blocks hold all times.
func nanoseconds(t time.Time) int64 {
	switch seconds := t.Unix(); {
	case seconds < 0:
		return 0
	case seconds >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// widen merges blocks to wider ones.
func (a *Arm) widen(width time.Duration) {
	from, times := a.blocks, int64(width/a.width)
	a.blocks, a.width = make(map[blockKey]*group, len(from)), width
	for _, key := range slices.SortedFunc(maps.Keys(from), blockKey.compare) {
		to := blockKey{key.run, key.index / times}
		if g := a.blocks[to]; g != nil {
			g.merge(from[key], same)
		} else {
			a.blocks[to] = from[key]
		}
	}
}

func same(slo int) int { return slo }

// Merge adds the runs of another arm. They stay apart from those of the arm that have the same names.
func (a *Arm) Merge(other *Arm) {
	runs := make([]int, len(other.runs))
	for i, r := range other.runs {
		runs[i] = a.run(a.runNames.unused(other.runNames.names[i]))
		to := &a.runs[runs[i]]
		if !r.first.IsZero() {
			to.cover(r.first, r.last)
		}
		to.busy += r.busy
		to.requests += r.requests
	}
	slos := make([]int, len(other.sloNames.names))
	for i, name := range other.sloNames.names {
		slos[i] = a.slo(name)
	}
	renumbered := func(slo int) int { return slos[slo] }
	if a.blocks != nil && other.width > a.width {
		a.widen(other.width)
	}
	for _, key := range slices.SortedFunc(maps.Keys(other.blocks), blockKey.compare) {
		a.block(runs[key.run], time.Unix(0, key.index*int64(other.width))).merge(other.blocks[key], renumbered)
	}
	for i, name := range other.replicaNames.names {
		a.replica(name).merge(other.replicas[i], renumbered)
	}
	a.sample.merge(&other.sample)
	a.requests += other.requests
	a.folded += other.folded
}

// table numbers names in the order in which they come.
type table struct {
	names   []string
	numbers map[string]int
}

// find returns the number of a name, or -1.
func (t *table) find(name string) int {
	if i, ok := t.numbers[name]; ok {
		return i
	}
	return -1
}

// add returns the number of a name, or -1 for a new one beyond the limit.
func (t *table) add(name string, limit int) int {
	if i := t.find(name); i >= 0 || len(t.names) >= limit {
		return i
	}
	if t.numbers == nil {
		t.numbers = map[string]int{}
	}
	t.names = append(t.names, name)
	t.numbers[name] = len(t.names) - 1
	return len(t.names) - 1
}

// folding returns the number of a name. Beyond the limit, it is that of another one.
func (t *table) folding(name string, limit int) (i int, folded bool) {
	if i = t.add(name, limit); i >= 0 {
		return i, false
	}
	return int(hash(name) % uint64(limit)), true
}

// unused returns a name that is not in the table.
func (t *table) unused(name string) string {
	for i, free := 2, name; ; i++ {
		if t.find(free) < 0 {
			return free
		}
		free = fmt.Sprintf("%s (%d)", name, i)
	}
}
