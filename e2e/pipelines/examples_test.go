// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

func TestExamples_AreValidConfigs(t *testing.T) {
	t.Parallel()
	collector.ExampleEnvironment(t)
	files, err := filepath.Glob(filepath.Join(testenv.Root(t), "examples", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range []string{"slo/presets.yaml", "canary/collector.yaml", "canary/kserve.yaml", "capacity/collector.yaml"} {
		files = append(files, collector.Example(t, name))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			collector.Run(t, collector.Built(t, "otelcol-tokenpulse"), "validate", "--config", file)
		})
	}
}

// The Collector of make test does not have all components of these.
func TestExamples_InFoldersAreReadable(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testenv.Root(t), "examples", "*", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		_, err := confmaptest.LoadConf(file)
		require.NoError(t, err, file)
	}
}

// Without the Collector's own metrics, refused and dropped data stay unseen.
func TestExamples_KeepOwnMetrics(t *testing.T) {
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(testenv.Root(t), "examples", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			if filepath.Base(file) != "quickstart.yaml" { // several may run on the host of a first-time user
				require.NotContains(t, string(content), "level: none", file)
			}
		}
	}
}

func TestExampleQuickstart_CountsEveryRequest(t *testing.T) {
	t.Parallel()
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"))
	collector.Run(t, collector.Built(t, "tokenpulse"), "replay", collector.DemoRecording(t), "--transport", "ndjson", "--endpoint", c.HTTP)
	require.Equal(t, collector.DemoRequests(t), exposition.RequestCount(exposition.Scrape(t, c)))
}

func TestExampleSpansToFile_WritesEverySpanWithItsTimeline(t *testing.T) {
	t.Parallel()
	spans := replayThrough(t, "spans-to-file.yaml")
	require.Len(t, spans, collector.DemoRequests(t))
	for _, span := range spans {
		_, found := span.Attributes().Get("tokenpulse.timeline")
		require.True(t, found, "the span has no timeline")
	}
}

// Trace backends get what people read: events, and no encoded data.
func TestExamples_StoreReadableTraces(t *testing.T) {
	for _, name := range []string{"any-instrumentation.yaml", "slo-sampling.yaml", "tail-sampling.yaml", "wire-sampled-traces.yaml"} {
		t.Run(name, func(t *testing.T) {
			collector.Setenv(t, "DECISION_WAIT", "1s")
			spans := replayThrough(t, name)
			require.NotEmpty(t, spans)
			for _, span := range spans {
				otlpfile.RequireReadable(t, span)
				_, first := span.Attributes().Get("tokenpulse.time_to_first_token")
				require.Equal(t, first, span.Events().Len() > 0 && span.Events().At(0).Name() == "tokenpulse.first_token")
			}
		})
	}
}

// replayThrough sends the demo recording through an example that writes spans to a
// file, and returns the spans.
func replayThrough(t *testing.T, name string) []ptrace.Span {
	t.Helper()
	spansFile := collector.ExampleEnvironment(t)
	c := collector.Start(t, collector.Example(t, name))
	collector.Replay(t, c, collector.DemoRecording(t))
	c.Stop(t)
	return otlpfile.ReadSpans(t, spansFile)
}

// The expected traces are computed from the spans of examples/spans-to-file.yaml.
func TestExampleTailSampling_KeepsExactlyFailedSlowAndStalledRequests(t *testing.T) {
	t.Parallel()
	var interesting, kept []string
	for _, span := range replayThrough(t, "spans-to-file.yaml") {
		attributes := span.Attributes()
		perToken, hasPerToken := attributes.Get("tokenpulse.time_per_output_token")
		stalls, hasStalls := attributes.Get("tokenpulse.stall.count")
		if otlpfile.Text(t, attributes, "tokenpulse.outcome") != "success" ||
			hasPerToken && perToken.Double() > 0.05 || hasStalls && stalls.Int() > 0 {
			interesting = append(interesting, span.TraceID().String())
		}
	}
	for _, span := range replayThrough(t, "tail-sampling.yaml") {
		kept = append(kept, span.TraceID().String())
	}
	require.NotEmpty(t, interesting)
	require.Less(t, len(interesting), collector.DemoRequests(t))
	require.ElementsMatch(t, interesting, kept)
}

func TestExampleSecured_RejectsRequestsWithoutTheToken(t *testing.T) {
	t.Parallel()
	collector.ExampleEnvironment(t)
	c := collector.Start(t, collector.Example(t, "secured.yaml"))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted(t)}}}
	for token, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "secret": http.StatusOK} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+c.HTTP+"/v1/tokens", strings.NewReader(
			`{"event":"start","stream_id":"one","time_unix_nano":1795233292000000000}`))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/x-ndjson")
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, "token %q", token)
	}
}

func trusted(t *testing.T) *x509.CertPool {
	t.Helper()
	certificate, err := os.ReadFile(collector.Getenv(t, "TLS_CERT_FILE"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certificate))
	return pool
}
