// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// Names of the paths that differ only in their load.
const (
	loadUsual     = "50 streams of 500 tokens per request, 4 series"
	loadShort     = "streams of 10 tokens"
	loadLong      = "streams of 10,000 tokens"
	loadVeryLong  = "streams of 100,000 tokens"
	loadSeries    = "10,000 series"
	loadParts     = "streams in 10 parts, 100 open streams"
	loadManyParts = "streams in 10 parts, 10,000 open streams"
)

const (
	manySeries     = 10_000
	manyStreams    = 10_000
	partsPerStream = 10
)

// loadConfig has limits above the largest load.
var loadConfig = sliConfig("token_stream", "max_chunks_per_stream: 1000000, ", fmt.Sprintf(", max_series: %d", 2*manySeries))

// bodySequence holds the bodies that each connection sends in turn, with new IDs in each
// turn.
type bodySequence [connections][]*numberedBody

// loadPaths returns the path of protobuf over HTTP with different loads.
func loadPaths(collector string) []*path {
	withLoad := func(name string, tokens int, bodies bodySequence) *path {
		next := new([connections]int)
		do := action(func(c *collectorProcess, connection int) error {
			body := bodies[connection][next[connection]%len(bodies[connection])]
			next[connection]++
			return postBody(c, "/v1/tokens", protobufType, body.next())
		})
		return &path{
			name: name, unit: "token", binary: collector, config: loadConfig, do: do, units: tokens,
			// Each Collector gets the first parts of streams first. All bodies are sent
			// once before the measurement, which creates all series: creating a series is
			// not a cost per token.
			prepare: func(c *collectorProcess) error {
				*next = [connections]int{}
				for _, sequence := range bodies {
					for _, body := range sequence {
						body.sent = 0 // parts of a stream have one number
					}
				}
				return do.repeat(c, connections*len(bodies[0]))
			},
		}
	}
	return []*path{
		withLoad(loadUsual, tokensPerRequest, wholeStreams(streamsPerRequest, tokensPerStream)),
		withLoad(loadShort, tokensPerRequest, wholeStreams(tokensPerRequest/10, 10)),
		withLoad(loadLong, 2*10_000, wholeStreams(2, 10_000)),
		withLoad(loadVeryLong, 100_000, wholeStreams(1, 100_000)),
		withLoad(loadSeries, tokensPerRequest, oneStreamPerSeries(manySeries)),
		withLoad(loadParts, tokensPerRequest/partsPerStream, streamsInParts(connections*streamsPerRequest)),
		withLoad(loadManyParts, tokensPerRequest/partsPerStream, streamsInParts(manyStreams)),
	}
}

// wholeStreams returns one request of whole streams per connection.
func wholeStreams(streams, tokens int) (bodies bodySequence) {
	for connection := range bodies {
		bodies[connection] = []*numberedBody{newNumberedBody(tokenStreams(planOf(fmt.Sprint("connection-", connection), streams, tokens, models)))}
	}
	return bodies
}

// oneStreamPerSeries returns one whole stream of each series.
func oneStreamPerSeries(count int) (bodies bodySequence) {
	for group := range count / streamsPerRequest {
		var names []string
		for i := range streamsPerRequest {
			names = append(names, fmt.Sprintf("model-%d-%d", group, i))
		}
		sequence := &bodies[group%connections]
		*sequence = append(*sequence, newNumberedBody(tokenStreams(planOf(fmt.Sprint("group-", group), streamsPerRequest, tokensPerStream, names))))
	}
	return bodies
}

// streamsInParts keeps a number of streams open: the first parts of all streams precede
// the second parts.
func streamsInParts(streams int) (bodies bodySequence) {
	for part := range partsPerStream {
		for group := range streams / streamsPerRequest {
			sequence := &bodies[group%connections]
			*sequence = append(*sequence, newNumberedBody(tokenStreamParts(plan(fmt.Sprint("group-", group), tokensPerStream), part, partsPerStream)))
		}
	}
	return bodies
}
