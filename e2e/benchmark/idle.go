// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// idleTime is how long an idle Collector is watched. The kernel counts in steps of 10 ms.
const idleTime = 20 * time.Second

// idlePercent returns how much of one core a Collector takes that gets no requests.
func idlePercent(o options) (float64, error) {
	c, err := start(collectorWith(o.collector, kinds[wire].config))
	if err != nil {
		return 0, err
	}
	defer c.stop()
	before, err := c.cpuTime()
	if err != nil {
		return 0, err
	}
	time.Sleep(idleTime)
	after, err := c.cpuTime()
	return 100 * float64(after-before) / float64(idleTime), err
}
