// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

// path is one way to process one load, measured as CPU time per unit.
type path struct {
	key
	arguments []string // the program and its arguments
	// newAction is called for each process, so that each gets the same requests.
	newAction func() action
	prepare   func(c *collectorProcess) error // before the first action; may be nil
	warm      int                             // actions before the measurement, at least
	units     float64                         // requests, spans or histograms per action
	checks    []check
}

// key identifies a path: what is sent, and what processes it.
type key struct{ load, kind string }

func (k key) String() string { return k.load + ": " + k.kind }

// measurement is the result of a path in one round.
type measurement struct {
	nanos  float64 // CPU time per unit
	memory float64 // peak, in bytes
}

// results holds the measurements of each round.
type results map[key][]measurement

// cost returns the median CPU time in nanoseconds per unit.
func (r results) cost(load, kind string) float64 { return median(r.nanos(key{load, kind})) }

func (r results) nanos(k key) (nanos []float64) {
	for _, m := range r[k] {
		nanos = append(nanos, m.nanos)
	}
	return nanos
}
