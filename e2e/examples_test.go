// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

func TestExamples_AreValidConfigs(t *testing.T) {
	t.Parallel()
	exampleEnvironment(t)
	files, err := filepath.Glob(filepath.Join(testenv.Root(t), "examples", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	files = append(files, example(t, "slo/presets.yaml"), example(t, "canary/collector.yaml"))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			run(t, built(t, "otelcol-tokenpulse"), "validate", "--config", file)
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
	c := startCollector(t, example(t, "quickstart.yaml"))
	run(t, built(t, "tokengen"), "replay", demoRecording(t), "--transport", "ndjson", "--endpoint", c.http)
	require.Equal(t, demoRequests(t), requestCount(scrape(t, c)))
}

func TestExampleSpansToFile_WritesEverySpanWithItsTimeline(t *testing.T) {
	t.Parallel()
	spans := replayThrough(t, "spans-to-file.yaml")
	require.Len(t, spans, demoRequests(t))
	for _, span := range spans {
		_, found := span.Attributes().Get("tokenpulse.timeline")
		require.True(t, found, "the span has no timeline")
	}
}

// Trace backends get what people read: events, and no encoded data.
func TestExamples_StoreReadableTraces(t *testing.T) {
	for _, name := range []string{"any-instrumentation.yaml", "slo-sampling.yaml", "tail-sampling.yaml", "wire-sampled-traces.yaml"} {
		t.Run(name, func(t *testing.T) {
			setenv(t, "DECISION_WAIT", "1s")
			spans := replayThrough(t, name)
			require.NotEmpty(t, spans)
			for _, span := range spans {
				requireReadable(t, span)
				_, first := span.Attributes().Get("tokenpulse.time_to_first_token")
				require.Equal(t, first, span.Events().Len() > 0 && span.Events().At(0).Name() == "tokenpulse.first_token")
			}
		})
	}
}

// requireReadable checks that a span has at most 20 attributes of tokenpulse, besides those of breaches and stalls,
// and no bytes.
func requireReadable(t *testing.T, span ptrace.Span) {
	t.Helper()
	var ours []string
	for name, value := range span.Attributes().All() {
		require.NotEqual(t, pcommon.ValueTypeBytes, value.Type(), name)
		if hasPrefixIn(name, "tokenpulse.") && !hasPrefixIn(name, "tokenpulse.slo.breached", "tokenpulse.slo.verdict.", "tokenpulse.stall.") {
			ours = append(ours, name)
		}
	}
	require.LessOrEqual(t, len(ours), 20, ours)
}

// replayThrough sends the demo recording through an example that writes spans to a
// file, and returns the spans.
func replayThrough(t *testing.T, name string) []ptrace.Span {
	t.Helper()
	spansFile := exampleEnvironment(t)
	c := startCollector(t, example(t, name))
	replay(t, c, demoRecording(t))
	c.stop(t)
	return readSpans(t, spansFile)
}

// The expected traces are computed from the spans of examples/spans-to-file.yaml.
func TestExampleTailSampling_KeepsExactlyFailedSlowAndStalledRequests(t *testing.T) {
	t.Parallel()
	var interesting, kept []string
	for _, span := range replayThrough(t, "spans-to-file.yaml") {
		attributes := span.Attributes()
		perToken, hasPerToken := attributes.Get("tokenpulse.time_per_output_token")
		stalls, hasStalls := attributes.Get("tokenpulse.stall.count")
		if text(t, attributes, "tokenpulse.outcome") != "success" ||
			hasPerToken && perToken.Double() > 0.05 || hasStalls && stalls.Int() > 0 {
			interesting = append(interesting, span.TraceID().String())
		}
	}
	for _, span := range replayThrough(t, "tail-sampling.yaml") {
		kept = append(kept, span.TraceID().String())
	}
	require.NotEmpty(t, interesting)
	require.Less(t, len(interesting), demoRequests(t))
	require.ElementsMatch(t, interesting, kept)
}

func TestExampleSecured_RejectsRequestsWithoutTheToken(t *testing.T) {
	t.Parallel()
	exampleEnvironment(t)
	c := startCollector(t, example(t, "secured.yaml"))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted(t)}}}
	for token, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "secret": http.StatusOK} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+c.http+"/v1/tokens", strings.NewReader(
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

func example(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(testenv.Root(t), "examples", name)
}

func demoRecording(t *testing.T) string {
	t.Helper()
	return filepath.Join(testenv.Root(t), "testdata", "recordings", "demo.jsonl")
}

// demoRequests counts the requests of the demo recording.
func demoRequests(t *testing.T) int {
	t.Helper()
	recording, err := os.ReadFile(demoRecording(t))
	require.NoError(t, err)
	return bytes.Count(recording, []byte(`"event":"start"`))
}

// exampleEnvironment sets the environment variables that the examples read, and returns
// the file that they write spans to.
func exampleEnvironment(t *testing.T) (spansFile string) {
	t.Helper()
	folder := t.TempDir()
	spansFile = filepath.Join(folder, "spans.jsonl")
	certificate, key := selfSigned(t, folder)
	for name, value := range map[string]string{
		"SPANS_FILE":         spansFile,
		"OTLP_GRPC_ENDPOINT": freeAddress(t),
		"OTLP_HTTP_ENDPOINT": freeAddress(t),
		"HEALTH_ENDPOINT":    freeAddress(t),
		"TOKENPULSE_TOKEN":   "secret",
		"TLS_CERT_FILE":      certificate,
		"TLS_KEY_FILE":       key,
	} {
		setenv(t, name, value)
	}
	return spansFile
}

// selfSigned writes a certificate and key for the loopback address.
func selfSigned(t *testing.T, folder string) (certificateFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "tokenpulse test"},
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	encodedKey, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	write := func(name, kind string, content []byte) string {
		var encoded bytes.Buffer
		require.NoError(t, pem.Encode(&encoded, &pem.Block{Type: kind, Bytes: content}))
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, encoded.Bytes(), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", certificate), write("key.pem", "PRIVATE KEY", encodedKey)
}

func trusted(t *testing.T) *x509.CertPool {
	t.Helper()
	certificate, err := os.ReadFile(getenv(t, "TLS_CERT_FILE"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certificate))
	return pool
}
