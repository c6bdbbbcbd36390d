// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"
)

const (
	// turns is how often each path is measured in a round.
	turns = 5
	// actionsPerRead is the number of actions between two reads of the CPU time.
	actionsPerRead = 4
)

// The heaps of the measured processes. Go collects garbage when the heap has doubled by default. A Collector that
// holds little, such as otlp with nop, then collects all the time, and a busy one with a larger heap does not: the
// large heap compares what the components do.
const (
	defaultHeap = "GOGC=100"
	largeHeap   = "GOGC=1000"
)

// measure measures all paths of a group in a number of rounds. The paths take turns, so
// that a noisy machine affects all of them.
func measure(group []*path, rounds int, cpu time.Duration, heap string) results {
	measured := results{}
	for round := range rounds {
		about(fmt.Sprintf("round %d", round+1), func() { measureRound(group, cpu, heap, measured) })
	}
	return measured
}

// measureRound starts a Collector per path, so that no round inherits a heap and the
// peak memory belongs to one path. Idle Collectors use no CPU. The warm-up is long enough for the large heap
// to fill once: the kernel takes CPU time for each new page.
func measureRound(group []*path, cpu time.Duration, heap string, measured results) {
	var running []*pathRun
	defer func() {
		for _, r := range running {
			r.stop()
		}
	}()
	for _, p := range group {
		about(p.String(), func() {
			r := &pathRun{collectorProcess: start(p.arguments, heap), path: p, do: p.newAction()}
			running = append(running, r)
			r.warmUp(cpu)
		})
	}
	for range turns {
		for _, r := range running {
			about(r.path.String(), func() { r.measure(cpu / turns) })
		}
	}
	for _, r := range running {
		about(r.path.String(), func() { measured[r.path.key] = append(measured[r.path.key], r.finish()) })
	}
}

// pathRun is one path in one round.
type pathRun struct {
	*collectorProcess
	path *path
	do   action

	unmeasured int // actions
	actions    int
	used       time.Duration
}

func (r *pathRun) warmUp(cpu time.Duration) {
	if r.path.prepare != nil {
		r.path.prepare(r.collectorProcess)
	}
	r.do.repeat(r.collectorProcess, r.path.warm)
	r.unmeasured = r.path.warm
	r.measure(cpu)
	r.unmeasured, r.actions, r.used = r.unmeasured+r.actions, 0, 0
}

// measure repeats the action until the Collector has used the CPU time. A fixed number
// of actions would be too few for one path or too many for another. The kernel counts
// CPU time in steps of 10 ms, so the measurement begins and ends at a step.
func (r *pathRun) measure(cpu time.Duration) {
	begin := r.repeatUntil(&r.unmeasured, r.cpuTime()+1)
	r.used += r.repeatUntil(&r.actions, begin+cpu) - begin
}

// repeatUntil repeats the action until the CPU time reaches a value, and returns it.
func (r *pathRun) repeatUntil(actions *int, until time.Duration) (now time.Duration) {
	for now < until {
		r.do.repeat(r.collectorProcess, actionsPerRead)
		*actions += actionsPerRead
		now = r.cpuTime()
	}
	return now
}

func (r *pathRun) finish() measurement {
	for _, check := range r.path.checks {
		check.await(r.collectorProcess, r.unmeasured+r.actions)
	}
	return measurement{float64(r.used.Nanoseconds()) / (float64(r.actions) * r.path.units), r.peakMemory()}
}
