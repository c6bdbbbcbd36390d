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

// measure measures all paths of a group in a number of rounds. The paths take turns, so
// that a noisy machine affects all of them.
func measure(group []*path, rounds int, cpu time.Duration) (results, error) {
	measured := results{}
	for round := range rounds {
		if err := measureRound(group, cpu, measured); err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return measured, nil
}

// measureRound starts a Collector per path, so that no round inherits a heap and the
// peak memory belongs to one path. Idle Collectors use no CPU. A warm-up lets
// connections and the heap settle.
func measureRound(group []*path, cpu time.Duration, measured results) error {
	var running []*pathRun
	defer func() {
		for _, r := range running {
			r.stop()
		}
	}()
	for _, p := range group {
		c, err := start(p.arguments)
		if err != nil {
			return fmt.Errorf("%s: %w", p.key, err)
		}
		r := &pathRun{collectorProcess: c, path: p, do: p.newAction()}
		running = append(running, r)
		if err := r.warmUp(cpu / turns); err != nil {
			return fmt.Errorf("%s: %w", p.key, err)
		}
	}
	for range turns {
		for _, r := range running {
			if err := r.measure(cpu / turns); err != nil {
				return fmt.Errorf("%s: %w", r.path.key, err)
			}
		}
	}
	for _, r := range running {
		result, err := r.finish()
		if err != nil {
			return fmt.Errorf("%s: %w", r.path.key, err)
		}
		measured[r.path.key] = append(measured[r.path.key], result)
	}
	return nil
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

func (r *pathRun) warmUp(cpu time.Duration) error {
	if r.path.prepare != nil {
		if err := r.path.prepare(r.collectorProcess); err != nil {
			return err
		}
	}
	if err := r.do.repeat(r.collectorProcess, r.path.warm); err != nil {
		return err
	}
	r.unmeasured = r.path.warm
	err := r.measure(cpu)
	r.unmeasured, r.actions, r.used = r.unmeasured+r.actions, 0, 0
	return err
}

// measure repeats the action until the Collector has used the CPU time. A fixed number
// of actions would be too few for one path or too many for another. The kernel counts
// CPU time in steps of 10 ms, so the measurement begins and ends at a step.
func (r *pathRun) measure(cpu time.Duration) error {
	before, err := r.cpuTime()
	if err != nil {
		return err
	}
	begin, err := r.repeatUntil(&r.unmeasured, before+1)
	if err != nil {
		return err
	}
	end, err := r.repeatUntil(&r.actions, begin+cpu)
	r.used += end - begin
	return err
}

// repeatUntil repeats the action until the CPU time reaches a value, and returns it.
func (r *pathRun) repeatUntil(actions *int, until time.Duration) (now time.Duration, err error) {
	for now < until && err == nil {
		if err = r.do.repeat(r.collectorProcess, actionsPerRead); err != nil {
			return 0, err
		}
		*actions += actionsPerRead
		now, err = r.cpuTime()
	}
	return now, err
}

func (r *pathRun) finish() (result measurement, err error) {
	for _, check := range r.path.checks {
		if err := check.await(r.collectorProcess, r.unmeasured+r.actions); err != nil {
			return result, err
		}
	}
	result.nanos = float64(r.used.Nanoseconds()) / (float64(r.actions) * r.path.units)
	result.memory, err = r.peakMemory()
	return result, err
}
