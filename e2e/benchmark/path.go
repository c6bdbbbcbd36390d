// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

// path is one way to process the data, measured as CPU time per unit.
type path struct {
	name   string
	unit   string // token, span or histogram
	binary string
	config string
	// prepare runs once, before the measurement. It may be nil.
	prepare func(c *collectorProcess) error
	do      action
	units   int // per action
	checks  []check
}

// measurement is the result of a path in one round.
type measurement struct {
	nanos  float64 // CPU time per unit
	memory int     // peak, in bytes
}
