// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// idleTime is how long an idle Collector is watched. The kernel counts in steps of 10 ms.
const idleTime = 20 * time.Second

// idleCores returns how many cores a Collector takes after the requests of one turn, while
// it receives no more.
func idleCores(o options, l load, series string) (float64, error) {
	c, err := start(collectorWith(o.collector, wireConfig("", series, "")))
	if err != nil {
		return 0, err
	}
	defer c.stop()
	bodies := l.bodies(tokenStreams)
	if err := bodies.inTurn(postTokens).repeat(c, connections*len(bodies[0])); err != nil {
		return 0, err
	}
	before, err := c.cpuTime()
	if err != nil {
		return 0, err
	}
	time.Sleep(idleTime)
	after, err := c.cpuTime()
	return float64(after-before) / float64(idleTime), err
}
