// Command benchmark measures what a token costs the whole Collector process.
//
// It sends the same streams to the same build of the Collector in two ways:
//
//	(a) protobuf to token_stream, through token_latency, into token_sli
//	(b) OTLP spans with one span event per token, to otlp, into nop
//
// and prints the CPU time of the process per token for both, and their ratio.
// The rounds of (a) and (b) alternate, so that a noisy machine is noisy for
// both; the median over the rounds is what counts.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
)

func main() {
	collector := flag.String("collector", "dist/otelcol-tokenpulse", "the built Collector")
	rounds := flag.Int("rounds", 5, "rounds of each path")
	streams := flag.Int("streams", 4000, "streams per round")
	tokens := flag.Int("tokens", 500, "tokens per stream")
	batch := flag.Int("batch", 50, "streams per request")
	flag.Parse()
	if err := run(*collector, *rounds, *streams, *tokens, *batch); err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

func run(collector string, rounds, streams, tokens, batch int) error {
	if rounds < 1 || tokens < 2 || batch < 1 || streams < batch {
		return errors.New("there must be at least one round, two tokens a stream, and one full batch of streams")
	}
	plans := plan(batch, tokens)
	paths := []*path{
		{name: "(a) protobuf -> token_stream -> token_latency -> token_sli", config: tokenStreamConfig, target: "/v1/tokens", body: tokenStreams(plans)},
		{name: "(b) OTLP span events -> otlp -> nop", config: otlpConfig, target: "/v1/traces", body: spanEvents(plans)},
	}
	requests := streams / batch
	measured := float64(requests * batch * tokens)
	for round := range rounds {
		for _, p := range paths {
			cpu, err := p.round(collector, requests)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", p.name, round+1, err)
			}
			p.nanosPerToken = append(p.nanosPerToken, float64(cpu.Nanoseconds())/measured)
		}
	}

	fmt.Printf("%d rounds of %d streams of %d tokens, %d streams a request, %s, %d CPUs\n",
		rounds, requests*batch, tokens, batch, runtime.Version(), runtime.NumCPU())
	fmt.Printf("%-62s %14s %14s %12s\n", "", "CPU ns/token", "min .. max", "wire B/token")
	for _, p := range paths {
		fmt.Printf("%-62s %14.1f %6.1f .. %5.1f %11.2f\n", p.name, median(p.nanosPerToken),
			slices.Min(p.nanosPerToken), slices.Max(p.nanosPerToken), float64(len(p.body))/float64(batch*tokens))
	}
	fmt.Printf("ratio (b)/(a) %.1f\n", median(paths[1].nanosPerToken)/median(paths[0].nanosPerToken))
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
