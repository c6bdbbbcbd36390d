// Command benchmark measures the CPU time of a whole Collector process.
//
// It sends the same streams of tokens, and the same spans, along several paths: to
// the token_stream receiver, to the otlp receiver and nothing behind it, and, when
// given a build with spanmetrics, through that. See docs/performance.md, which it
// writes: how it measures is told there.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"
)

type options struct {
	collector, peers string
	rounds           int
	cpu              time.Duration
	minRatio         float64
	document         string
}

func main() {
	var o options
	flag.StringVar(&o.collector, "collector", "dist/otelcol-tokenpulse", "the built Collector")
	flag.StringVar(&o.peers, "peers", "", "a Collector with spanmetrics; without it, tokens alone are measured, and against OTLP alone")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of measuring each path")
	flag.DurationVar(&o.cpu, "cpu", time.Second, "CPU time of each path in a round, at least")
	flag.Float64Var(&o.minRatio, "min-ratio", 0, "fail when a token as an OTLP span event is not this many times as dear as one of ours")
	flag.StringVar(&o.document, "document", "", "file to write the results to, besides printing them")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.rounds < 1 || o.cpu < 250*time.Millisecond {
		return errors.New("there must be at least one round, and 250ms of CPU time: the kernel counts in steps of 10ms")
	}
	groups := [][]*path{forTokens(o.collector, o.peers)}
	if o.peers != "" {
		groups = append(groups, forLoads(o.collector), forSpans(o.collector, o.peers), forScrapes(o.collector, o.peers))
	}
	measured := map[string][]measurement{}
	for _, group := range groups {
		of, err := measure(group, o.rounds, o.cpu)
		if err != nil {
			return err
		}
		maps.Copy(measured, of)
	}
	tables := []string{ratioTable(measured), wireTable()}
	if o.peers != "" {
		for _, measure := range []func(collector string) (string, error){openTable, pauseTable} {
			answers, err := measure(o.collector)
			if err != nil {
				return err
			}
			tables = append(tables, answers)
		}
		cores, err := coresTable(o.rounds, o.cpu)
		if err != nil {
			return err
		}
		tables = append(tables, cores)
	}
	for _, group := range groups {
		tables = append(tables, costTable(group, measured))
	}
	results := strings.Join(tables, "\n")
	fmt.Print(results)
	if o.document != "" {
		if err := document(o, results); err != nil {
			return err
		}
	}
	if ratio := median(againstNop.of(measured)); ratio < o.minRatio {
		return fmt.Errorf("%s: the ratio is %.1f and has to be at least %g", againstNop.name, ratio, o.minRatio)
	}
	return nil
}
