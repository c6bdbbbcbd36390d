// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/send"
)

// A receiver gets the requests of a result of any tool, over both forms of its wire format.
func TestReplay_SendsResultsOfBenchmarks(t *testing.T) {
	compressed, err := os.ReadFile("internal/recording/testdata/guidellm_report.json.gz")
	require.NoError(t, err)
	for name, test := range map[string]struct {
		result string
		chunks []int // of each request
	}{
		"vLLM":           {`{"model_id":"m","num_prompts":2,"ttfts":[0.1,0],"itls":[[0.1,0.1],[]],"output_lens":[3,0],"errors":["","Bad Gateway"]}`, []int{3, 0}},
		"SGLang":         {`{"backend":"sglang","dataset_name":"d","ttfts":[0.1],"itls":[[0.1,0.1]],"output_lens":[3]}`, []int{2}},
		"guidellm":       {string(compressed), []int{14, 37}},
		"inference-perf": {`[{"start_time":1,"end_time":2,"info":{"output_tokens":2,"output_token_times":[1.5,1.6]}}]`, []int{2}},
	} {
		for _, transport := range []send.Transport{send.NDJSON, send.GRPC} {
			t.Run(name+"/"+string(transport), func(t *testing.T) {
				receiver := startReceiver(t)
				path := filepath.Join(t.TempDir(), "result.json")
				require.NoError(t, os.WriteFile(path, []byte(test.result), 0o600))
				_, err := run(t.Context(), "replay", path, "--transport", string(transport), "--endpoint", receiver.Endpoint(transport))
				require.NoError(t, err)
				var chunks []int
				for _, s := range receiver.Streams() {
					chunks = append(chunks, len(s.Chunks))
					require.Equal(t, "replay", s.Resource.Attributes["service.name"])
				}
				require.ElementsMatch(t, test.chunks, chunks)
			})
		}
	}
}
