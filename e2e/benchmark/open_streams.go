package main

import "fmt"

// What is open at a time, and how much of each is known.
const (
	openStreams = 1_000_000
	openTokens  = 100
)

var roomForOpenStreams = `
receivers: {token_stream: {max_streams: 2000000, max_memory_mib: 4096, idle_timeout: 1h, protocols: {http: {endpoint: "$http"}, grpc: {endpoint: "$grpc"}}}}
processors: {token_latency: {}}
exporters: {token_sli: {endpoint: "$scrape"}}
service:
  telemetry: ` + telemetry + `
  pipelines: {traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli]}}
`

// openTable opens streams that do not end, and tells what they take, and how long
// requests take while they are there.
func openTable(collector string) (string, error) {
	c, err := start(collector, roomForOpenStreams)
	if err != nil {
		return "", err
	}
	defer c.kill() // it would write a million spans
	for group := range openStreams / streamsPerRequest {
		// Of two parts, the first has no end.
		body := tokenStreamParts(plan(fmt.Sprint("open-", group), 2*openTokens), 0, 2)
		if err := post("/v1/tokens", protobufType, same(body))(c, 0); err != nil {
			return "", err
		}
	}
	memory, err := c.peakMemory()
	if err != nil {
		return "", err
	}
	took, err := answerTimes(c, answersTimed)
	if err != nil {
		return "", err
	}
	rows := [][]string{goal{atMost: 1.5}.row("peak RSS, GiB", float64(memory)/(1<<30))}
	rows = append(rows, answerRows("", took, goal{atMost: 50})...)
	return table([]string{"1,000,000 open streams of 100 tokens", "measured", "goal", "met"}, rows), nil
}
