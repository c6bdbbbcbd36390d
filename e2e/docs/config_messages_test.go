// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// settingsTemplate is a configuration with all five components, each with further settings.
const settingsTemplate = `
receivers:
  token_stream: {STREAM}
  token_tap: {endpoint: TAP_ENDPOINT, TAP}
processors:
  token_latency: {LATENCY}
exporters:
  token_sli: {endpoint: SLI_ENDPOINT, EXPORTER}
connectors:
  token_sli/metrics: {CONNECTOR}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream, token_tap], processors: [token_latency], exporters: [token_sli/metrics]}
    metrics: {receivers: [token_sli/metrics], exporters: [token_sli]}
`

// anySettings are valid settings of each component.
var anySettings = map[string]string{
	"STREAM": "protocols: {http: {endpoint: STREAM_ENDPOINT}}", "TAP": "upstream: {endpoint: 'http://localhost:1'}",
	"LATENCY": "timeline: drop", "EXPORTER": "windows: [5m]", "CONNECTOR": "temporality: delta",
}

// writeSettings writes the template with other settings of one component. Endpoints are unused unless given.
func writeSettings(t *testing.T, component, settings string, endpoints map[string]string) (file string) {
	t.Helper()
	content := settingsTemplate
	for name, any := range anySettings {
		if name == component {
			any = settings
		}
		content = strings.ReplaceAll(content, "{"+name+"}", "{"+any+"}")
		content = strings.ReplaceAll(content, ", "+name+"}", ", "+any+"}")
	}
	for _, name := range []string{"STREAM_ENDPOINT", "TAP_ENDPOINT", "SLI_ENDPOINT"} {
		address := endpoints[name]
		if address == "" {
			address = collector.FreeAddress(t)
		}
		content = strings.ReplaceAll(content, name, address)
	}
	file = filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

const (
	httpServerKeys = "dialer, endpoint, transport, tls, cors, auth, max_request_body_size, include_metadata, response_headers, compression_algorithms, " +
		"read_timeout, read_header_timeout, write_timeout, middlewares, keepalive, idle_timeout, keep_alives_enabled"
	seriesKeys = "dimensions, max_series, series_expiration, metrics, objectives, storage, conventions, deduplication"
)

// Each message names the key as the file has it, and what to write instead.
func TestConfigMessages_NameKeyAndRemedy(t *testing.T) {
	slo := func(more string) string {
		return "slos: [{name: a, indicator: time_to_first_token, threshold: 2s, " + more + "}]"
	}
	tests := map[string]struct{ component, settings, message string }{
		"percentile as a name":  {"EXPORTER", "percentiles: [50, p99]", "`percentiles::1` is \"p99\"; use a number, such as 99"},
		"percentiles, no list":  {"EXPORTER", "percentiles: 99", "`percentiles` is 99; use a list, in brackets"},
		"bound in words":        {"EXPORTER", "dimensions: [a, {attribute: b, bands: [1k]}]", "`dimensions::1::bands::0` is \"1k\"; use a number, such as 1000"},
		"one bound":             {"CONNECTOR", "dimensions: [{attribute: b, bands: 7}]", "`dimensions::0::bands` is 7; use a list, in brackets"},
		"dimension as a number": {"STREAM", "series: {dimensions: [7]}", "`series::dimensions::0` is 7; use the name of an attribute, or a section with the keys attribute, bands, label"},
		"range in words":        {"LATENCY", slo("match_range: {a: 0-1000}"), "`slos::0::match_range::a` is \"0-1000\"; use a section with the keys min, max"},
		"range of a list":       {"LATENCY", slo("match_range: {a: {max: [1]}}"), "`slos::0::match_range::a::max` is a list; use a number"},
		"objective in percent":  {"EXPORTER", "objectives: [{slo: a, objective: 95%}]", "`objectives::0::objective` is \"95%\"; use a number, such as 0.95"},
		"of the connector":      {"CONNECTOR", "objectives: [{slo: a, objective: 95%}]", "`objectives::0::objective` is \"95%\"; use a number, such as 0.95"},
		"of the receiver":       {"STREAM", "series: {objectives: [{slo: a, objective: 95%}]}", "`series::objectives::0::objective` is \"95%\"; use a number, such as 0.95"},
		"window in days":        {"EXPORTER", "objectives: [{slo: a, objective: 0.9, window: 30d}]", "`objectives::0::window` is \"30d\"; use hours, such as 720h for 30 days"},
		"window in words":       {"EXPORTER", "windows: [5 minutes]", "`windows::0` is \"5 minutes\"; use a duration with its unit, such as 30s"},
		"page switched on":      {"EXPORTER", "page: true", "`page` is true; use a section with the keys enabled, trace_link"},
		"temporality":           {"CONNECTOR", "temporality: 1", "`temporality` is 1; use cumulative or delta"},
		"timeline switched on":  {"LATENCY", "timeline: true", "`timeline` is true; use keep or drop"},
		"phases in words":       {"LATENCY", "phases: all", "`phases` is \"all\"; use true or false"},
		"list to match":         {"LATENCY", slo("match: {gen_ai.request.model: [a, b]}"), "`slos::0::match::gen_ai.request.model` is a list; use one text, in quotes; for several, use match_regexp, such as 'a|b'"},
		"of the receiver's SLO": {"STREAM", "latency: {" + slo("match: {tier: 1}") + "}", "`latency::slos::0::match::tier` is 1; use one text, in quotes; for several, use match_regexp, such as 'a|b'"},
		"limit in words":        {"TAP", "upstream: {endpoint: 'http://localhost:1'}, max_streams: many", "`max_streams` is \"many\"; use a number"},
		"secret":                {"TAP", "upstream: {endpoint: 'http://localhost:1', headers: {authorization: [TOPSECRET]}}", "`upstream::headers::authorization` is a list; use text, in quotes if it looks like something else"},
		"numeric secret":        {"TAP", "upstream: {endpoint: 'http://localhost:1', headers: {authorization: 4711}}", "`upstream::headers::authorization` is not text; use text, in quotes if it looks like something else"},

		"misplaced key of token_stream": {"STREAM", "endpoint: 'localhost:4319'", "unknown key \"endpoint\"; use `protocols::http::endpoint`; valid keys: protocols, service_name, idle_timeout, first_token_timeout, max_streams, " +
			"max_chunks_per_stream, max_event_bytes, max_memory_mib, max_live_requests, max_share_per_client, storage, latency, series, spans, liveness"},
		"unknown key of a server": {"STREAM", "protocols: {http: {end_point: 'localhost:4319'}}", "unknown key \"end_point\" in `protocols::http`; valid keys: " + httpServerKeys},
		"unknown key of token_tap": {"TAP", "upstreams: {}", "unknown key \"upstreams\"; valid keys: " + httpServerKeys + ", upstream, routes, allowed_hosts, service_name, attributes_from_headers, propagate, " +
			"max_streams, max_chunks_per_stream, max_event_bytes, max_memory_mib, max_stream_duration, max_queued_spans, liveness, storage"},
		"unknown key of a route":       {"TAP", "routes: [{prefix: /a, upstrem: {}}]", "unknown key \"upstrem\" in `routes::0`; valid keys: prefix, upstream"},
		"unknown key of token_latency": {"LATENCY", "slo: []", "unknown key \"slo\"; valid keys: timeline, detail, distribution, trust_annotations, stall_threshold, tpot_denominator, events, phases, join, roll_up, slos, fluidity, cold_start"},
		"unknown key of the exporter":  {"EXPORTER", "quantile: [1]", "unknown key \"quantile\"; valid keys: " + httpServerKeys + ", allowed_hosts, max_share_per_client, " + seriesKeys + ", percentiles, windows, zero_for, classic_buckets, compare, capacity, page, history"},
		"unknown key of the connector": {"CONNECTOR", "percentiles: [99]", "unknown key \"percentiles\"; valid keys: " + seriesKeys + ", metrics_flush_interval, temporality, event_attributes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, err := exec.CommandContext(t.Context(), collector.Built(t, "otelcol-tokenpulse"), "validate", "--config", writeSettings(t, test.component, test.settings, nil)).CombinedOutput()
			require.Error(t, err)
			lines := strings.Split(strings.TrimSpace(string(output)), "\n")
			_, message, found := strings.Cut(lines[len(lines)-1], "''") // the Collector names the component before it
			require.True(t, found, string(output))
			require.Equal(t, test.message, strings.TrimSpace(message))
			require.NotContains(t, string(output), "SECRET")
			require.NotContains(t, string(output), "4711")
		})
	}
	collector.Run(t, collector.Built(t, "otelcol-tokenpulse"), "validate", "--config", writeSettings(t, "", "", nil)) // nothing else is wrong with the template
}

func TestConfigMessages_OfStartNameKeyAndRemedy(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	taken := listener.Addr().String()
	inUse := "listen tcp " + taken + ": bind: address already in use; stop what listens there, or choose another port"
	noFile := "open /missing.pem: no such file or directory; enter the path of a file that the Collector may read"
	tests := map[string]struct {
		component, settings string
		endpoints           map[string]string
		message             string
	}{
		"port of token_stream":     {"", "", map[string]string{"STREAM_ENDPOINT": taken}, "\"token_stream\" receiver: `protocols::http::endpoint`: " + inUse},
		"gRPC port":                {"STREAM", "protocols: {grpc: {endpoint: '" + taken + "'}}", nil, "\"token_stream\" receiver: `protocols::grpc::endpoint`: " + inUse},
		"port of token_tap":        {"", "", map[string]string{"TAP_ENDPOINT": taken}, "\"token_tap\" receiver: `endpoint`: " + inUse},
		"port of the exporter":     {"", "", map[string]string{"SLI_ENDPOINT": taken}, "\"token_sli\" exporter: `endpoint`: " + inUse},
		"certificate of a server":  {"STREAM", "protocols: {grpc: {endpoint: STREAM_ENDPOINT, tls: {cert_file: /missing.pem, key_file: /missing.pem}}}", nil, "`protocols::grpc::tls`: failed to load TLS config: failed to load TLS cert and key: " + noFile},
		"authority of an upstream": {"TAP", "upstream: {endpoint: 'https://localhost:1', tls: {ca_file: /missing.pem}}", nil, "`upstream::tls`: failed to load TLS config: failed to load CA CertPool File: failed to load cert /missing.pem: " + noFile},
		"authority of a route":     {"TAP", "routes: [{prefix: /a, upstream: {endpoint: 'https://localhost:1', tls: {ca_file: /missing.pem}}}]", nil, "`routes::0::upstream::tls`: failed to load TLS config: failed to load CA CertPool File: failed to load cert /missing.pem: " + noFile},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := writeSettings(t, test.component, test.settings, test.endpoints)
			output, err := exec.CommandContext(t.Context(), collector.Built(t, "otelcol-tokenpulse"), "--config", file).CombinedOutput()
			require.Error(t, err)
			lines := strings.Split(strings.TrimSpace(string(output)), "\n")
			require.True(t, strings.HasSuffix(lines[len(lines)-1], test.message), lines[len(lines)-1])
		})
	}
}

func TestConfigMessages_OfLogsPipelineNameOtherWays(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), collector.Built(t, "otelcol-tokenpulse"), "validate", "--config", writeSettings(t, "", "", nil),
		"--set=exporters.debug=", "--set=service.pipelines.logs.receivers=[token_stream]", "--set=service.pipelines.logs.exporters=[debug]").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), `"token_stream" receiver for data type "logs": token_stream does not read OTLP logs; to report the tokens`)
	require.Contains(t, string(output), "post events to /v1/tokens or call tokenpulse.v1.TokenStreamService over gRPC, or set attributes of the request's span (docs/timeline-attributes.md)")
}

func TestConfigMessages_OfExporterInNoPipeline(t *testing.T) {
	t.Parallel()
	c := collector.Start(t, writeSettings(t, "", "", nil), "--set=receivers.token_tap.endpoint="+collector.FreeAddress(t), "--set=exporters.token_sli/unused.endpoint=localhost:4711")
	require.Equal(t, 1, strings.Count(c.Output(t), "a token_sli exporter is in no pipeline"))
	require.Contains(t, c.Output(t), `"endpoints": ["localhost:4711"]`)

	bare := collector.Start(t, writeSettings(t, "", "", nil), "--set=receivers.token_tap.endpoint="+collector.FreeAddress(t), "--set=exporters.token_sli/unused=")
	require.Contains(t, bare.Output(t), `"endpoints": ["localhost:9464"]`, "one without settings")
}
