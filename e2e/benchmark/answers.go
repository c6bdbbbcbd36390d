package main

import (
	"fmt"
	"slices"
	"time"
)

// answersTimed is how many requests are timed.
const answersTimed = 5_000

// answerTimes sends so many requests of one whole stream, one after the other, and
// returns how long each answer took, in milliseconds.
func answerTimes(c *collectorProcess, requests int) (took []float64, err error) {
	whole := post("/v1/tokens", protobufType, same(tokenStreams(planOf("whole", 1, tokensPerStream, models))))
	for range requests {
		begin := time.Now()
		if err := whole(c, 0); err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(begin))/float64(time.Millisecond))
	}
	return took, nil
}

// answerRows show the longest answer beside its goal, and others that say whether it
// was the only one.
func answerRows(when string, took []float64, g goal) [][]string {
	sorted := slices.Sorted(slices.Values(took))
	return [][]string{
		g.row(fmt.Sprintf("%slongest answer of %d, ms", when, len(took)), sorted[len(sorted)-1]),
		goal{}.row(when+"99.9% of answers within, ms", sorted[len(sorted)*999/1000]),
		goal{}.row(when+"half of them within, ms", median(took)),
	}
}
