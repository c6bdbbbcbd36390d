// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

// What the documentation of the receiver says.
const (
	tokensPath   = "/v1/tokens"
	typeNDJSON   = "application/x-ndjson"
	typeJSON     = "application/json"
	typeProtobuf = "application/x-protobuf"
)

// answer is the answer over HTTP.
type answer struct {
	Accepted int
	Rejected int
	Errors   []answerError
}

type answerError struct {
	Line     int
	StreamID string `json:"stream_id"`
	Message  string
}

// take returns a request for one message, whose units add to applied.
func take(t testing.TB, r *tokenStreamReceiver, applied *ingest.Answer) *ingest.Request {
	t.Helper()
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: r.settings.ID, ReceiverCreateSettings: r.settings})
	require.NoError(t, err)
	return r.ingester.Take(report, false, applied)
}

// span is the parts of a span that tests compare.
type span struct {
	State                string // tracestate
	Name, Kind           string
	Trace, ID, Parent    string
	Start, End           uint64
	Status, Message      string
	Attributes, Resource map[string]any
	Chunks               []chunk
}

type chunk struct {
	Offset  time.Duration
	Tokens  uint32
	Channel timeline.Channel
}

// sink is a pipeline that refuses data on request.
type sink struct {
	mu    sync.Mutex
	spans []span
	calls int
	fail  func(context.Context) error
}

func (*sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (s *sink) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	s.mu.Lock()
	s.calls++
	fail := s.fail
	s.mu.Unlock()
	if fail != nil {
		if err := fail(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, each := range scope.Spans().All() {
				s.spans = append(s.spans, toSpan(resource.Resource().Attributes(), each))
			}
		}
	}
	return nil
}

func toSpan(resource pcommon.Map, s ptrace.Span) span {
	out := span{
		Name: s.Name(), Kind: s.Kind().String(),
		Trace: s.TraceID().String(), ID: s.SpanID().String(), Parent: s.ParentSpanID().String(),
		Start: uint64(s.StartTimestamp()), End: uint64(s.EndTimestamp()),
		State:  s.TraceState().AsRaw(),
		Status: s.Status().Code().String(), Message: s.Status().Message(),
		Attributes: s.Attributes().AsRaw(), Resource: resource.AsRaw(),
	}
	stored, kept := out.Attributes[names.Timeline].([]byte)
	if _, annotated := out.Attributes[names.Source]; annotated && !kept {
		return out
	}
	delete(out.Attributes, names.Timeline)
	walk, err := timeline.Decode(stored)
	if err != nil {
		panic(err)
	}
	for walk.Next() {
		out.Chunks = append(out.Chunks, chunk{walk.Offset(), walk.Tokens(), walk.Channel()})
	}
	if walk.Err() != nil {
		panic(walk.Err())
	}
	return out
}

func (s *sink) failWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = func(context.Context) error { return err }
}

// all returns the spans so far, sorted by start.
func (s *sink) all() []span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(s.spans), func(a, b span) int { return int(a.Start) - int(b.Start) })
}

func (s *sink) one(t *testing.T) span {
	t.Helper()
	all := s.all()
	require.Len(t, all, 1)
	return all[0]
}

// bench is a receiver under test with its pipeline and telemetry.
type bench struct {
	*tokenStreamReceiver
	sink      *sink
	telemetry *componenttest.Telemetry
}

func start(t testing.TB, change ...func(*Config)) *bench {
	t.Helper()
	b := prepare(t, change...)
	require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
	return b
}

// prepare returns a receiver that is not started yet.
func prepare(t testing.TB, change ...func(*Config)) *bench {
	t.Helper()
	cfg := configOn("localhost:0", change...)
	require.NoError(t, cfg.Validate())
	telemetry, settings := withTelemetry(t)
	b := &bench{sink: &sink{}, telemetry: telemetry}
	r, err := newReceiver(cfg, settings)
	require.NoError(t, err)
	b.tokenStreamReceiver = r
	r.sendTraces(b.sink)
	t.Cleanup(func() {
		b.sink.failWith(nil) // so that the shutdown does not retry
		_ = r.Shutdown(context.Background())
		http.DefaultClient.CloseIdleConnections()
	})
	return b
}

// configOn returns settings with gRPC on a free port, and HTTP on this address.
func configOn(http string, change ...func(*Config)) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Protocols.HTTP.Get().NetAddr.Endpoint = http
	cfg.Protocols.GRPC.Get().NetAddr.Endpoint = "localhost:0"
	cfg.MaxMemoryMiB = 1024 // the default depends on the machine
	for _, f := range change {
		f(cfg)
	}
	return cfg
}

// withTelemetry returns settings whose self-metrics the test reads.
func withTelemetry(t testing.TB) (*componenttest.Telemetry, receiver.Settings) {
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { _ = telemetry.Shutdown(context.Background()) })
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.ID = component.NewID(metadata.Type) // the storage is found by it
	settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	return telemetry, settings
}

func (b *bench) url() string { return "http://" + b.server.AddrHTTP.String() + tokensPath }

type reply struct {
	status int
	header http.Header
	answer answer
}

func (b *bench) post(t testing.TB, contentType string, body io.Reader, header ...string) reply {
	t.Helper()
	resp, content := do(t, b.url(), contentType, body, header...)
	out := reply{status: resp.StatusCode, header: resp.Header}
	require.NoError(t, json.Unmarshal(content, &out.answer), "%s", content)
	return out
}

// post returns a request whose header is pairs of names and values.
func post(url, contentType string, body io.Reader, header ...string) *http.Request {
	req, err := http.NewRequest(http.MethodPost, url, body)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", contentType)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

// do posts a body, and returns the response with its content.
func do(t testing.TB, url, contentType string, body io.Reader, header ...string) (*http.Response, []byte) {
	t.Helper()
	resp, err := http.DefaultClient.Do(post(url, contentType, body, header...))
	require.NoError(t, err)
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, content
}

func (b *bench) lines(t testing.TB, lines ...string) reply {
	t.Helper()
	return b.post(t, typeNDJSON, strings.NewReader(strings.Join(lines, "\n")+"\n"))
}

func (b *bench) dialGRPC(t testing.TB) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(b.server.AddrGRPC.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (b *bench) grpc(t testing.TB) tokenpulsev1.TokenStreamServiceClient {
	t.Helper()
	return tokenpulsev1.NewTokenStreamServiceClient(b.dialGRPC(t))
}

// live is a body that stays open.
type live struct {
	*io.PipeWriter
	answered chan reply
	protocol string // known once it is answered
}

func (b *bench) live(t testing.TB) *live {
	t.Helper()
	return open(t, http.DefaultClient, b.url(), typeNDJSON)
}

// open sends the headers of a request; the caller sends the body.
func open(t testing.TB, client *http.Client, url, contentType string, header ...string) *live {
	t.Helper()
	reader, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	l := &live{PipeWriter: writer, answered: make(chan reply, 1)}
	go func() {
		resp, err := client.Do(post(url, contentType, reader, header...))
		if err != nil {
			l.answered <- reply{status: -1}
			return
		}
		defer resp.Body.Close()
		l.protocol = resp.Proto
		out := reply{status: resp.StatusCode, header: resp.Header}
		_ = json.NewDecoder(resp.Body).Decode(&out.answer)
		l.answered <- out
	}()
	return l
}

func (l *live) send(t testing.TB, lines ...string) {
	t.Helper()
	_, err := io.Copy(l, bytes.NewBufferString(strings.Join(lines, "\n")+"\n"))
	require.NoError(t, err)
}

func (l *live) wait(t testing.TB) reply {
	t.Helper()
	select {
	case r := <-l.answered:
		return r
	case <-time.After(time.Minute):
		require.Fail(t, "no answer to the live body")
		return reply{}
	}
}

// eventually waits until other goroutines fulfill the condition.
func eventually(t testing.TB, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, time.Millisecond, what)
}

func requireMetric(t *testing.T, b *bench, name string, attributes map[string]string, want int64) {
	t.Helper()
	require.Equal(t, want, metricValue(t, b, name, attributes), "%s %v", name, attributes)
}
