// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/metadata"
)

// tap is a running receiver in front of an upstream.
type tap struct {
	t         testing.TB
	receiver  *tokenTapReceiver
	url       string
	spans     *consumertest.TracesSink
	logs      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
}

// start starts a receiver. Its upstream answers with handle.
func start(t *testing.T, handle http.HandlerFunc, change ...func(*Config)) *tap {
	t.Helper()
	upstream := httptest.NewServer(handle)
	t.Cleanup(upstream.Close)
	return startAt(t, new(consumertest.TracesSink), append([]func(*Config){func(cfg *Config) { cfg.Upstream.Endpoint = upstream.URL }}, change...)...)
}

// startAt starts a receiver that sends its spans to next.
func startAt(t testing.TB, next consumer.Traces, change ...func(*Config)) *tap {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Server.NetAddr.Endpoint = "localhost:0"
	for _, f := range change {
		f(cfg)
	}
	require.NoError(t, cfg.Validate())
	core, logs := observer.New(zap.DebugLevel)
	telemetry := componenttest.NewTelemetry()
	settings := receiver.Settings{
		ID: receivertest.NewNopSettings(metadata.Type).ID, TelemetrySettings: telemetry.NewTelemetrySettings(),
	}
	settings.Logger = zap.New(core)
	r, err := newReceiver(cfg, settings, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, r.Shutdown(context.Background()))
		require.NoError(t, telemetry.Shutdown(context.Background()))
	})
	sink, _ := next.(*consumertest.TracesSink)
	return &tap{t, r, "http://" + r.address.String(), sink, logs, telemetry}
}

// client is a client that adds nothing to requests, and waits for a limited time.
func client(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// open sends a request for a completion and returns the answer once it begins.
func (p *tap) open(path, body string) *http.Response {
	p.t.Helper()
	response, err := client(p.t).Post(p.url+path, "application/json", strings.NewReader(body))
	require.NoError(p.t, err, "the tap must answer at once, whatever limit is reached")
	p.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// dial opens a connection to the tap, which ends with the test.
func (p *tap) dial() net.Conn {
	p.t.Helper()
	connection, err := net.Dial("tcp", p.receiver.address.String())
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = connection.Close() })
	require.NoError(p.t, connection.SetDeadline(time.Now().Add(time.Minute)))
	return connection
}

// begin begins an exchange that the test forwards.
func (p *tap) begin(method, path string) *exchange {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, http.NoBody)
	require.NoError(p.t, err)
	x := p.receiver.begin(p.receiver.routes[0], request)
	p.t.Cleanup(x.finish)
	return x
}

// post sends a request for a completion and returns the answer with its whole body.
func (p *tap) post(path, body string) (*http.Response, string) {
	p.t.Helper()
	response := p.open(path, body)
	answer, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	return response, string(answer)
}

// span waits for the only span.
func (p *tap) span() ptrace.Span {
	p.t.Helper()
	return p.spansAfter(1)[0]
}

// spansAfter waits for a number of spans.
func (p *tap) spansAfter(n int) (all []ptrace.Span) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.spans.SpanCount() >= n }, time.Minute, time.Millisecond)
	for _, traces := range p.spans.AllTraces() {
		for _, span := range traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			all = append(all, span)
		}
	}
	require.Len(p.t, all, n)
	return all
}

// attributesOf returns those of a span, without the timeline.
func attributesOf(span ptrace.Span) map[string]any {
	all := span.Attributes().AsRaw()
	delete(all, "tokenpulse.timeline")
	return all
}

// arrivals returns the Unix times in nanoseconds at which chunks arrived, truncated to microseconds.
func arrivals(t *testing.T, span ptrace.Span) (times []int64, tokens int) {
	t.Helper()
	encoded, ok := span.Attributes().Get("tokenpulse.timeline")
	require.True(t, ok)
	walk, err := timeline.Decode(encoded.Bytes().AsRaw())
	require.NoError(t, err)
	for walk.Next() {
		times = append(times, int64(span.StartTimestamp())+int64(walk.Offset()))
		tokens += int(walk.Tokens())
	}
	require.NoError(t, walk.Err())
	return times, tokens
}

// counter returns the sum of a self-metric over its data points.
func (p *tap) counter(name string) (sum int64) {
	for _, value := range p.counterBy("", name) {
		sum += value
	}
	return sum
}

// counterBy returns the values of a self-metric by one of its attributes.
func (p *tap) counterBy(label attribute.Key, name string) map[string]int64 {
	p.t.Helper()
	values := map[string]int64{}
	metric, err := p.telemetry.GetMetric("otelcol_receiver_token_tap_" + name)
	if err != nil {
		return values // nothing was counted
	}
	for _, point := range metric.Data.(metricdata.Sum[int64]).DataPoints {
		value, _ := point.Attributes.Value(label)
		values[value.AsString()] += point.Value
	}
	return values
}

const (
	chatPath    = "/v1/chat/completions"
	chatRequest = `{"model":"gpt-x","stream":true,"messages":[]}`
	roleEvent   = `data: {"id":"r1","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	tokenEvent  = `data: {"id":"r1","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":{"content":"hi"}}]}` + "\n\n"
	finishEvent = `data: {"id":"r1","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usageEvent  = `data: {"id":"r1","object":"chat.completion.chunk","model":"m-1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}` + "\n\n"
	doneEvent   = "data: [DONE]\n\n"
)

func chatAnswer(tokens int) string {
	return roleEvent + strings.Repeat(tokenEvent, tokens) + finishEvent + usageEvent + doneEvent
}

// stream sends the head of a streamed answer and returns a function that sends a piece at once.
func stream(w http.ResponseWriter) func(piece string) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(piece string) {
		_, _ = io.WriteString(w, piece)
		_ = http.NewResponseController(w).Flush()
	}
	send("")
	return send
}

// answerChat answers any request with a stream of three tokens.
func answerChat(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	stream(w)(chatAnswer(3))
}

// numbered is text that differs at each position.
func numbered(bytes int) string {
	var text strings.Builder
	for i := 0; text.Len() < bytes; i++ {
		fmt.Fprintf(&text, "%d,", i)
	}
	return text.String()[:bytes]
}

// beginChat begins an exchange whose answer the test decodes.
func (p *tap) beginChat() *exchange {
	p.t.Helper()
	x := p.begin(http.MethodPost, chatPath)
	x.decoding.reader.decoder = llmstream.NewDecoder(llmstream.AnswerHead{Path: chatPath, Status: 200}, llmstream.Limits{EventBytes: 1 << 20}, x.decoding.call.Chunk)
	return x
}

// repeated is a body whose reads return the same bytes without end.
type repeated string

func (r repeated) Read(p []byte) (int, error) { return copy(p, r), nil }
