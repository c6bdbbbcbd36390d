// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"
)

// check compares a counter of the Collector with the number of actions. Receivers
// respond after the pipeline is done, so the first read usually succeeds.
type check struct {
	address   func(c *collectorProcess) string
	metric    string
	perAction int
}

func accepted(spans int) check {
	return check{func(c *collectorProcess) string { return c.telemetry }, "otelcol_receiver_accepted_spans", spans}
}

func scraped(metric string, perAction int) check {
	return check{func(c *collectorProcess) string { return c.scrape }, metric, perAction}
}

// await waits until the counter equals the expected value exactly.
func (k check) await(c *collectorProcess, actions int) error {
	want := float64(k.perAction * actions)
	var got float64
	for range 200 {
		text, err := c.metrics(k.address(c), textFormat)
		if err != nil {
			return err
		}
		if got = sum(text, k.metric); got == want {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s is %v, expected %v; the Collector lost or repeated data", k.metric, got, want)
}
