// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/recording"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/streamspan"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// BenchmarkScan reads recordings of each kind into spans.
func BenchmarkScan(b *testing.B) {
	demo, err := os.ReadFile(testenv.Data(b, "recordings/demo.jsonl"))
	require.NoError(b, err)
	itls, times := strings.Repeat(",0.0123456789", 200)[1:], strings.Repeat(",1.5", 200)[1:]
	for name, recorded := range map[string][]byte{
		"token events": demo,
		"AIPerf":       testenv.Unzip(b, "../recording/testdata/aiperf_profile_export.jsonl.gz"),
		"vLLM": fmt.Appendf(nil, `{"model_id":"m","num_prompts":100,"ttfts":[%s],"itls":[%s]}`,
			strings.Repeat(",0.5", 100)[1:], strings.Repeat(",["+itls+"]", 100)[1:]),
		"inference-perf": fmt.Appendf(nil, `[%s]`, strings.Repeat(fmt.Sprintf(`,{"start_time":1,"end_time":2,"request":%q,"info":{"output_token_times":[%s]}}`, strings.Repeat("x", 4000), times), 100)[1:]),
		"guidellm":       testenv.Unzip(b, "../recording/testdata/guidellm_report.json.gz"),
	} {
		b.Run(name, func(b *testing.B) {
			k, ok := recording.Detect(recorded)
			require.True(b, ok)
			spans := 0
			b.SetBytes(int64(len(recorded)))
			b.ReportAllocs()
			for b.Loop() {
				batches := streamspan.Batches{Yield: func(traces ptrace.Traces) error {
					spans += traces.SpanCount()
					return nil
				}}
				require.NoError(b, recording.Scanner{}.Scan(b.Context(), bytes.NewReader(recorded), k, batches.Add))
				require.NoError(b, batches.Flush())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(spans), "ns/request")
		})
	}
}
