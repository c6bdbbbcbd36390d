// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package fleet

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// Prints the CPU time of one Collector, and of a gateway and its workers, per stream:
//
//	go test -C e2e -count=1 -tags=fleet -v . -run TestFleetCost
//
// docs/scaling.md has the result.
func TestFleetCost_EveryStreamIsCounted(t *testing.T) {
	const batches, streams = 1000, 50
	for _, tokens := range []int{50, 500} {
		t.Run(fmt.Sprintf("streams of %d tokens", tokens), func(t *testing.T) {
			single := collector.Start(t, collector.Example(t, "quickstart.yaml"))
			f := startFleet(t, 3)
			var bodies [][]byte
			for batch := range batches {
				bodies = append(bodies, wholeStreams(t, batch, streams, tokens))
			}
			roles := []struct {
				name      string
				processes []*collector.Collector
			}{{"one Collector", []*collector.Collector{single}}, {"gateway", []*collector.Collector{f.gateway}}, {"workers", f.workers}}
			used := map[string]time.Duration{}
			// The first half warms up.
			for i, body := range bodies {
				if i == batches/2 {
					for _, role := range roles {
						used[role.name] = -cpuTime(t, role.processes)
					}
				}
				for _, to := range []*collector.Collector{single, f.gateway} {
					response, err := http.Post("http://"+to.HTTP+"/v1/tokens", "application/x-protobuf", bytes.NewReader(body))
					require.NoError(t, err)
					require.NoError(t, response.Body.Close())
					require.Equal(t, http.StatusOK, response.StatusCode)
				}
			}
			for _, role := range roles {
				perStream := (used[role.name] + cpuTime(t, role.processes)) / (batches / 2 * streams)
				t.Logf("%-14s %6.1f µs per stream, %4d ns per token", role.name, perStream.Seconds()*1e6, perStream.Nanoseconds()/int64(tokens))
			}
			t.Logf("%.2f bytes per token", float64(len(bodies[0]))/float64(streams*tokens))
			require.Equal(t, batches*streams, requests(t, single))
			counted := 0
			for _, w := range f.workers {
				counted += requests(t, w)
			}
			require.Equal(t, batches*streams, counted)
		})
	}
}

// wholeStreams encodes a batch of streams with one token every 20 ms.
func wholeStreams(t *testing.T, batch, streams, tokens int) []byte {
	t.Helper()
	all := &tokenpulsev1.ResourceTokenStreams{}
	for i := range streams {
		begin := uint64(time.Date(2026, 1, 1, 0, 0, batch, i, time.UTC).UnixNano())
		run := &tokenpulsev1.ChunkRun{TimeUnixNano: begin + 2e8, DeltaUnitNanos: 1000, TimeDeltas: make([]int64, tokens)}
		for token := 1; token < tokens; token++ {
			run.TimeDeltas[token] = 20_000
		}
		model := tokenevents.KeyValue("gen_ai.request.model", fmt.Sprint("model-", i%4))
		all.TokenStreams = append(all.TokenStreams, &tokenpulsev1.TokenStream{
			StreamId:  fmt.Sprintf("%d-%d", batch, i),
			Start:     &tokenpulsev1.StreamStart{TimeUnixNano: begin, Attributes: []*commonpb.KeyValue{model}},
			ChunkRuns: []*tokenpulsev1.ChunkRun{run},
			End:       &tokenpulsev1.StreamEnd{TimeUnixNano: begin + 2e8 + uint64(tokens)*2e7},
		})
	}
	body, err := proto.Marshal(&tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{all}})
	require.NoError(t, err)
	return body
}

// cpuTime returns the user and kernel time of processes, in hundredths of a second.
func cpuTime(t *testing.T, processes []*collector.Collector) time.Duration {
	t.Helper()
	var total time.Duration
	for _, c := range processes {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Command.Process.Pid))
		require.NoError(t, err)
		// The name, in parentheses, may contain spaces.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		total += time.Duration(promserver.Parsed(t, fields[11])+promserver.Parsed(t, fields[12])) * 10 * time.Millisecond
	}
	return total
}
