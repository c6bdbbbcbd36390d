// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"
)

// check compares a counter of the Collector with the number of actions. Receivers
// respond after the pipeline is done, and series are published once a second.
type check struct {
	published bool // by token_sli or spanmetrics; otherwise one of the Collector's own metrics
	metric    string
	perAction float64
}

// accepted and events check the Collector's own metrics.
func accepted(spans float64) check {
	return check{metric: "otelcol_receiver_accepted_spans", perAction: spans}
}

func events(count int) check {
	return check{metric: "otelcol_receiver_token_stream_events_accepted", perAction: float64(count)}
}

func scraped(metric string, perAction float64) check { return check{true, metric, perAction} }

// counted checks that the series have each request of whole streams, and each token.
func counted(l load) []check {
	requests := float64(len(l.lengths))
	return []check{
		scraped("tokenpulse_requests_total", requests),
		scraped("tokenpulse_inter_token_latency_seconds_count", float64(l.tokens())-requests),
	}
}

// await waits until the counter equals the expected value exactly.
func (k check) await(c *collectorProcess, actions int) error {
	address := c.telemetry
	if k.published {
		address = c.scrape
	}
	want := k.perAction * float64(actions)
	var got float64
	for range 200 {
		text, err := c.metrics(address, textFormat)
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
