// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// apiConfig has no processor: the test sends annotated spans.
const apiConfig = `
receivers: {otlp: {protocols: {http: {endpoint: "${env:OTLP_HTTP_ENDPOINT}"}}}}
exporters:
  token_sli:
    objectives: [{slo: chat-tpot, objective: 0.75, window: 1h}]
    page: {trace_link: "https://traces.example/{trace_id}?span={span_id}"}
service:
  pipelines: {traces: {receivers: [otlp], exporters: [token_sli]}}
  telemetry: {metrics: {level: none}}
`

func startForAPI(t *testing.T) *collector.Collector {
	t.Helper()
	return collector.Start(t, collector.WriteFile(t, t.TempDir(), "api.yaml", apiConfig))
}

// api returns the answer of an endpoint.
func api(t *testing.T, c *collector.Collector, path string) (*http.Response, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.PageURL("api/v1/"+path), http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	if response.Header.Get("Content-Type") == "text/event-stream" {
		return response, firstEvent(t, response.Body)
	}
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, body
}

// firstEvent returns the data of the first event, which is of the kind now.
func firstEvent(t *testing.T, events io.Reader) []byte {
	t.Helper()
	lines := bufio.NewScanner(events)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return []byte(data)
		}
	}
	t.Fatal("no event")
	return nil
}

// annotated returns a request with numbers, with changes. A nil value removes a key.
func annotated(changes map[string]any) map[string]any {
	attributes := map[string]any{
		"tokenpulse.vantage": "server", "tokenpulse.outcome": "success", "tokenpulse.time_to_first_token": 0.5,
		"tokenpulse.time_per_output_token": 0.02, "tokenpulse.request.duration": 2.0, "tokenpulse.queue.duration": 0.1,
		"tokenpulse.prefill.duration": 0.4, "tokenpulse.decode.duration": 1.5, "tokenpulse.network.duration": 0.05,
		"tokenpulse.stall.count": 1, "tokenpulse.stall.duration": 0.75, "tokenpulse.slo.met": []any{"chat-tpot"},
		"tokenpulse.slo.breached": []any{"chat-ttft"}, "tokenpulse.slo.not_eligible": []any{"answer-gap"},
		"gen_ai.provider.name": "vllm", "gen_ai.request.model": "llama", "gen_ai.operation.name": "chat",
		"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 76, "gen_ai.usage.cache_read.input_tokens": 64,
	}
	for key, value := range changes {
		attributes[key] = value
		if value == nil {
			delete(attributes, key)
		}
	}
	return attributes
}

// sendAnnotated sends spans of 2 seconds.
func sendAnnotated(t *testing.T, address string, spans ...map[string]any) {
	t.Helper()
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "chat")
	scope := resource.ScopeSpans().AppendEmpty()
	for i, attributes := range spans {
		span := scope.Spans().AppendEmpty()
		span.SetTraceID([16]byte{byte(i + 1)})
		span.SetSpanID([8]byte{byte(i + 1)})
		now := time.Now()
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-2 * time.Second)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
		require.NoError(t, span.Attributes().FromRaw(attributes))
	}
	body, err := new(ptrace.ProtoMarshaler).MarshalTraces(traces)
	require.NoError(t, err)
	collector.PostSpans(t, address, "application/x-protobuf", body)
}

// Each endpoint must answer as the OpenAPI file says, without and with data.
func TestAPI_AnswersAsItsDescriptionSays(t *testing.T) {
	t.Parallel()
	collector.Setenv(t, "OTLP_HTTP_ENDPOINT", collector.FreeAddress(t))
	empty := startForAPI(t)
	otlp := collector.FreeAddress(t)
	collector.Setenv(t, "OTLP_HTTP_ENDPOINT", otlp)
	busy := startForAPI(t)
	response, content := api(t, empty, "openapi.yaml")
	require.Equal(t, "application/yaml", response.Header.Get("Content-Type"))
	d := parseDescription(t, content)

	start := time.Now().UnixNano()
	var arrivals timeline.Timeline
	for _, offset := range []time.Duration{500 * time.Millisecond, 520 * time.Millisecond, 1300 * time.Millisecond} {
		arrivals.Append(start+int64(offset), 1, timeline.Content)
	}
	sendAnnotated(t, otlp,
		annotated(map[string]any{"tokenpulse.timeline": arrivals.AppendBinary(nil, start)}),
		annotated(map[string]any{"tokenpulse.outcome": "error", "gen_ai.request.model": nil}),
		annotated(map[string]any{
			"tokenpulse.slo.breached":           []any{"chat-tpot", "x"},
			"tokenpulse.slo.breached.indicator": []any{"time_per_output_token", nil}, "tokenpulse.slo.breached.threshold": []any{0.01, nil},
		}),
		map[string]any{"tokenpulse.outcome": "incomplete", "tokenpulse.unmeasured": []any{"time_to_first_token=no_token"}},
	)
	exposition.WaitForRequests(t, busy, 4)
	time.Sleep(time.Second) // equal API requests share an answer for half of it

	asked := map[string]bool{}
	ask := func(c *collector.Collector, path, endpoint string) []byte {
		response, body := api(t, c, path)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body)
		contentType := response.Header.Get("Content-Type")
		asked[endpoint] = true
		if endpoint == "/api/v1/events" { // its events are answers of now
			endpoint, contentType = "/api/v1/now", "application/json"
		}
		d.check(t, endpoint, "200", contentType, body)
		return body
	}
	for _, c := range []*collector.Collector{empty, busy} {
		for _, path := range []string{
			"meta", "now", "now?range=24h&where=gen_ai.request.model%3Dllama&vantage=server&outcome=success&outcome=error", "events",
			"worst", "trends", "trends?rank=requests", "trends?by=outcome", "trends?by=service.name&value=chat&value=none&groups=1&range=1h", "trends?by=vantage&range=24h",
			"distributions", "distributions?cdf=true&by=outcome&value=success&value=error", "heatmap", "heatmap?indicator=queue",
			"load", "prompts", "engines", "requests", "requests?slowest=time_to_first_token&limit=1", "openapi.yaml",
		} {
			name, _, _ := strings.Cut(path, "?")
			ask(c, path, "/api/v1/"+name)
		}
		for _, pair := range []string{
			"dimension=service.name&baseline=chat&candidate=new&slo=chat-tpot",
			"dimension=service.name&baseline=chat&candidate=new&indicator=time_to_first_token&percentile=95&alpha=0.01&tolerance=0.2&expected_share=0.1&vantage=server",
		} {
			const endpoint = "/api/v1/compare"
			for _, step := range []struct{ method, status string }{
				{http.MethodPost, "201"}, {http.MethodPost, "200"}, {http.MethodGet, "200"}, {http.MethodDelete, "204"},
			} {
				if step.method == http.MethodDelete {
					of, err := url.ParseQuery(pair)
					require.NoError(t, err)
					known := ask(c, "meta?where=service.name%3D"+of.Get("slo")+of.Get("indicator"), "/api/v1/meta") // not one that was just asked
					require.Contains(t, string(known), fmt.Sprintf(`"pairs":[{"dimension":"service.name","baseline":"chat","candidate":%q`, of.Get("candidate")))
				}
				status, body := send(t, step.method, c.PageURL("api/v1/compare?"+pair))
				require.Equal(t, step.status, strconv.Itoa(status), "%s: %s", step.method, body)
				d.check(t, step.method+" "+endpoint, step.status, "application/json", body)
			}
			asked[endpoint] = true
		}
	}
	var slowest struct{ Requests []struct{ ID string } }
	require.NoError(t, json.Unmarshal(ask(busy, "requests", "/api/v1/requests"), &slowest))
	require.Len(t, slowest.Requests, 3)
	for _, r := range slowest.Requests {
		ask(busy, "requests/"+r.ID, "/api/v1/requests/{id}")
	}
	asked["/api/v1/capacity"] = true // TestLivePage_SaysHowMuchRoomTheReplicasHave checks it, with the load that it needs
	for _, endpoint := range d.endpoints() {
		require.True(t, asked[endpoint], "%s is not checked", endpoint)
	}
}

func TestAPI_ErrorsHaveARemedy(t *testing.T) {
	t.Parallel()
	collector.Setenv(t, "OTLP_HTTP_ENDPOINT", collector.FreeAddress(t))
	c := startForAPI(t)
	_, content := api(t, c, "openapi.yaml")
	d := parseDescription(t, content)
	failing := map[string]int{
		"now?range=2": 400, "now?range=59s": 400, "now?range=169h": 400, "now?end=x": 400, "now?end=-1": 400, "now?end=1.5": 400, "now?where=x": 400, "now?where=x%3Dy": 400, "now?outcome=x": 400, "now?range=1h&range=1h": 400, "now?range=%zz": 400,
		"trends?by=x": 400, "trends?groups=0": 400, "trends?groups=51": 400, "trends?rank=x": 400, "distributions?cdf=maybe": 400, "heatmap?indicator=x": 400,
		"requests?limit=x": 400, "requests?slowest=x": 400, "requests/unknown": 404, "unknown": 404, "now?" + strings.Repeat("vantage=x&", 51): 400,
	}
	for _, endpoint := range d.endpoints() {
		if endpoint != "/api/v1/openapi.yaml" {
			failing[strings.TrimPrefix(endpoint, "/api/v1/")+"?nonsense=1"] = 400
		}
	}
	for path, status := range failing {
		response, body := api(t, c, path)
		require.Equal(t, status, response.StatusCode, path)
		d.check(t, "/api/v1/now", "default", response.Header.Get("Content-Type"), body)
		var e struct {
			Error struct {
				Status          int
				Message, Remedy string
			}
		}
		require.NoError(t, json.Unmarshal(body, &e))
		require.Equal(t, status, e.Error.Status)
		require.NotEmpty(t, e.Error.Message)
		require.NotEmpty(t, e.Error.Remedy)
		if name, ok := strings.CutSuffix(path, "?nonsense=1"); ok {
			known := strings.TrimPrefix(e.Error.Remedy, "valid parameters: ")
			want := strings.Join(d.parameters(t, "/api/v1/"+name), ", ")
			if want == "" {
				want = "none"
			}
			require.Equal(t, want, known, "%s: its parameters in openapi.yaml", name)
		}
	}
}
