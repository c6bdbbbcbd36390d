// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"time"
)

type options struct {
	collector, peers string
	rounds           int
	cpu              time.Duration
	minRatio         float64
	document         string
}

func parseOptions() (o options, err error) {
	flag.StringVar(&o.collector, "collector", "dist/otelcol-tokenpulse", "`path` of the Collector with tokenpulse")
	flag.StringVar(&o.peers, "peers", "", "`path` of a Collector with spanmetrics; without it, tokens are compared only with OTLP span events")
	flag.IntVar(&o.rounds, "rounds", 5, "number of rounds")
	flag.DurationVar(&o.cpu, "cpu", time.Second, "minimum CPU time of each path in a round")
	flag.Float64Var(&o.minRatio, "min-ratio", 0, "fail if OTLP span events → nop / tokenpulse, protobuf over HTTP, is below this ratio")
	flag.StringVar(&o.document, "document", "", "`file` to write the results to, in addition to printing them")
	flag.Parse()
	switch {
	case o.rounds < 1:
		return o, fmt.Errorf("-rounds is %d; give at least 1", o.rounds)
	case o.cpu < 250*time.Millisecond:
		return o, fmt.Errorf("-cpu is %s; give at least 250ms, because the kernel counts in steps of 10ms", o.cpu)
	}
	return o, nil
}
