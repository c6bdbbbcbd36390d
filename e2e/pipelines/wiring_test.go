// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// A pipeline for each mistake, and two without one. Spans arrive in pieces of a trace.
const miswired = `
receivers:
  otlp: {protocols: {http: {endpoint: "${env:OTLP}"}}}
processors:
  groupbytrace: {wait_duration: 1s}
  transform/unsampled:
    trace_statements: ['set(span.trace_state, "")']
  token_latency: {}
  token_latency/pieces: {join: true}
  token_latency/whole: {join: true}
exporters:
  nop:
  token_sli: {endpoint: "${env:METRICS}"}
connectors:
  token_sli/unmeasured:
  token_sli/unsampled:
  token_sli/sampled:
service:
  pipelines:
    traces/unmeasured: {receivers: [otlp], exporters: [token_sli/unmeasured]}
    traces/pieces: {receivers: [otlp], processors: [token_latency/pieces], exporters: [nop]}
    traces/sampled: {receivers: [otlp], processors: [token_latency], exporters: [token_sli/sampled]}
    traces/right:
      receivers: [otlp]
      processors: [groupbytrace, transform/unsampled, token_latency/whole]
      exporters: [token_sli/unsampled, token_sli]
    metrics:
      receivers: [token_sli/unmeasured, token_sli/unsampled, token_sli/sampled]
      exporters: [nop]
`

// Each mistake is a single warning of the component that sees it, with the remedy. (The
// fourth, an SLO that never applies, takes 15 minutes: see the processor's
// TestWiring_WarnsOnceOfAnSLOThatNeverApplies, and the long form of TestSoak.)
func TestMiswiredPipelines_WarnOnceWithTheRemedy(t *testing.T) {
	t.Parallel()
	endpoint, metrics := collector.FreeAddress(t), collector.FreeAddress(t)
	collector.Setenv(t, "OTLP", endpoint)
	collector.Setenv(t, "METRICS", metrics)
	c := collector.StartProcess(t, collector.Built(t, "otelcol-tokenpulse"), "--config", collector.WriteFile(t, t.TempDir(), "config.yaml", miswired), collector.OwnMetricsOff)
	c.WaitUntilReady(t)

	const traces = 50
	for trace := 1; trace <= traces; trace++ {
		for span := 1; span <= 2; span++ { // a probability of a quarter is the threshold c
			collector.PostSpans(t, endpoint, "application/json", fmt.Appendf(nil, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"%016x","name":"chat m","kind":3,"traceState":"ot=th:c",
				"startTimeUnixNano":"1795233292000000000","endTimeUnixNano":"1795233293000000000","attributes":[
				{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"m"}},
				{"key":"gen_ai.response.time_to_first_chunk","value":{"doubleValue":0.5}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"41"}}]}]}]}]}`, trace*0x9e3779b9, span))
		}
	}
	require.Eventually(t, func() bool { // in the pipeline that is right, and last
		return strings.Contains(string(collector.Get(t, "http://"+metrics+"/metrics", "text/plain")), fmt.Sprintf(`outcome="success",vantage="client"} %d`, 2*traces))
	}, collector.Patience, 100*time.Millisecond)
	c.Stop(t)

	remedies := map[string]string{
		"token_sli/unmeasured": "add a token_latency processor to the pipeline in front of token_sli",
		"token_latency/pieces": "put groupbytrace in front of token_latency",
		"token_sli/sampled":    "put token_sli before the sampler",
	}
	warnings := regexp.MustCompile(`(?m)^.*\twarn\t.*"otelcol.component.id": "(.*?)".*$`).FindAllStringSubmatch(c.Output(t), -1)
	require.Len(t, warnings, len(remedies))
	for _, warning := range warnings {
		require.Contains(t, remedies, warning[1])
		require.Contains(t, warning[0], remedies[warning[1]])
		delete(remedies, warning[1])
	}
}
