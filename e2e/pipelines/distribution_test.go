// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// Another distribution includes the components by gomod and import, as the README
// describes, beside the OTLP receiver. ocb builds it, and one stream passes through it.
func TestAnotherDistribution_BuildsAndMeasuresAStream(t *testing.T) {
	t.Parallel()
	root := testenv.Root(t)
	folder := t.TempDir()
	// The version is not published: a replace directive takes the module proxy's place.
	manifest := collector.WriteFile(t, folder, "builder-config.yaml", fmt.Sprintf(`
dist:
  name: otelcol-theirs
  output_path: %s
receivers:
  - gomod: github.com/tokenpulse/tokenpulse v0.1.0
    import: github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v0.161.0
processors:
  - gomod: github.com/tokenpulse/tokenpulse v0.1.0
    import: github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor
exporters:
  - gomod: github.com/tokenpulse/tokenpulse v0.1.0
    import: github.com/tokenpulse/tokenpulse/exporter/tokensliexporter
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/envprovider v1.67.0
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v1.67.0
replaces:
  - github.com/tokenpulse/tokenpulse => %s
`, filepath.Join(folder, "dist"), root))

	build := exec.Command("go", "tool", "-modfile="+filepath.Join(root, "internal", "tools", "go.mod"), "builder", "--config", manifest)
	build.Dir = root
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)

	theirs := &collector.Collector{HTTP: collector.FreeAddress(t), Metrics: collector.FreeAddress(t)}
	theirs.Process = collector.StartProcess(t, filepath.Join(folder, "dist", "otelcol-theirs"), "--config", collector.WriteFile(t, folder, "config.yaml", fmt.Sprintf(`
receivers:
  token_stream:
    protocols: {http: {endpoint: %s}, grpc: {endpoint: %s}}
processors:
  token_latency:
exporters:
  token_sli: {endpoint: %s}
service:
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli]}
  telemetry:
    metrics: {level: none}
`, theirs.HTTP, collector.FreeAddress(t), theirs.Metrics)))
	theirs.WaitFor(t, theirs.MetricsURL())
	theirs.Post(t, "application/x-ndjson", strings.NewReader(`{"event":"start","stream_id":"one","time_unix_nano":1795233292000000000,"attributes":{"gen_ai.request.model":"m"}}
{"event":"chunk","stream_id":"one","time_unix_nano":1795233292250000000}
{"event":"chunk","stream_id":"one","time_unix_nano":1795233292270000000}
{"event":"end","stream_id":"one","time_unix_nano":1795233292270000000}
`))

	text := string(collector.Get(t, theirs.MetricsURL(), "text/plain"))
	require.Contains(t, text, `tokenpulse_time_to_first_token_seconds_sum{gen_ai_request_model="m",outcome="success",service_name="unknown_service",vantage="server"} 0.25`)
	require.Contains(t, text, `tokenpulse_time_per_output_token_seconds_sum{gen_ai_request_model="m",outcome="success",service_name="unknown_service",vantage="server"} 0.02`)
}
