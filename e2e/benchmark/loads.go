package main

import (
	"fmt"
	"strings"
)

// Names of the paths that differ in their load alone.
const (
	loadUsual     = "50 streams of 500 tokens a request, 4 series"
	loadShort     = "streams of 10 tokens"
	loadLong      = "streams of 10,000 tokens"
	loadVeryLong  = "streams of 100,000 tokens"
	loadSeries    = "10,000 series"
	loadParts     = "streams in 10 parts, 100 open at a time"
	loadManyParts = "streams in 10 parts, 10,000 open at a time"
)

const (
	manySeries  = 10_000
	manyStreams = 10_000
	partsEach   = 10
)

// roomForLoads lets the largest of them in.
var roomForLoads = strings.NewReplacer(
	`{token_stream: {`, `{token_stream: {max_chunks_per_stream: 1000000, `,
	`"$scrape"`, fmt.Sprintf(`"$scrape", max_series: %d`, 2*manySeries),
).Replace(tokenStreamToSLI)

// inTurn are the bodies that each connection sends, one after the other.
type inTurn [connections][][]byte

// forLoads are the path of protobuf over HTTP under different loads.
func forLoads(collector string) []*path {
	under := func(name string, tokens int, bodies inTurn) *path {
		next := new([connections]int)
		do := action(func(c *collectorProcess, connection int) error {
			body := bodies[connection][next[connection]%len(bodies[connection])]
			next[connection]++
			return post("/v1/tokens", protobufType, same(body))(c, connection)
		})
		return &path{
			name: name, unit: "token", binary: collector, config: roomForLoads, do: do, units: tokens,
			// Parts of streams begin with the first in each Collector. Once through all of
			// them, every series there will be is there: what it takes to make one is no
			// cost of a token.
			prepare: func(c *collectorProcess) error {
				*next = [connections]int{}
				return do.repeat(c, connections*len(bodies[0]))
			},
		}
	}
	return []*path{
		under(loadUsual, tokensPerRequest, whole(streamsPerRequest, tokensPerStream)),
		under(loadShort, tokensPerRequest, whole(tokensPerRequest/10, 10)),
		under(loadLong, 2*10_000, whole(2, 10_000)),
		under(loadVeryLong, 100_000, whole(1, 100_000)),
		under(loadSeries, tokensPerRequest, ofSeries(manySeries)),
		under(loadParts, tokensPerRequest/partsEach, inParts(connections*streamsPerRequest)),
		under(loadManyParts, tokensPerRequest/partsEach, inParts(manyStreams)),
	}
}

// whole is one request of so many streams.
func whole(streams, tokens int) (bodies inTurn) {
	for connection := range bodies {
		bodies[connection] = [][]byte{tokenStreams(planOf(fmt.Sprint("connection-", connection), streams, tokens, models))}
	}
	return bodies
}

// ofSeries has one stream of each of so many series.
func ofSeries(count int) (bodies inTurn) {
	for group := range count / streamsPerRequest {
		var names []string
		for i := range streamsPerRequest {
			names = append(names, fmt.Sprintf("model-%d-%d", group, i))
		}
		into := &bodies[group%connections]
		*into = append(*into, tokenStreams(planOf(fmt.Sprint("group-", group), streamsPerRequest, tokensPerStream, names)))
	}
	return bodies
}

// inParts has so many streams open at a time: all have their first parts before any
// has its second.
func inParts(streams int) (bodies inTurn) {
	for part := range partsEach {
		for group := range streams / streamsPerRequest {
			into := &bodies[group%connections]
			*into = append(*into, tokenStreamParts(plan(fmt.Sprint("group-", group), tokensPerStream), part, partsEach))
		}
	}
	return bodies
}
