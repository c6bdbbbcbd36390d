package main

import (
	"fmt"
	"slices"
	"time"
)

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
	var took []float64
	body := tokenStreams(planOf("whole", 1, tokensPerStream, models))
	for range 5_000 {
		begin := time.Now()
		if err := post("/v1/tokens", protobufType, same(body))(c, 0); err != nil {
			return "", err
		}
		took = append(took, float64(time.Since(begin))/float64(time.Millisecond))
	}
	rows := [][]string{
		{"peak RSS, GiB", number(float64(memory) / (1 << 30)), goal{atMost: 1.5}.String(), goal{atMost: 1.5}.verdict(float64(memory) / (1 << 30))},
		{"longest answer to one of 5,000 requests, ms", number(slices.Max(took)), goal{atMost: 50}.String(), goal{atMost: 50}.verdict(slices.Max(took))},
		{"median answer, ms", number(median(took)), "", ""},
	}
	return table([]string{"1,000,000 open streams of 100 tokens", "measured", "goal", "met"}, rows), nil
}
