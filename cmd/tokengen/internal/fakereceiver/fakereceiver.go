// Package fakereceiver stands in for the token_stream receiver in tokengen's own
// tests: real HTTP and gRPC servers that keep what they are told.
package fakereceiver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/recording"
	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/send"
	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// Receiver keeps what it takes.
type Receiver struct {
	tokenpulsev1.UnimplementedTokenStreamServiceServer
	t          *testing.T
	http, grpc string

	// mu guards everything declared below.
	mu       sync.Mutex
	refusals []Refusal
	rejects  int64
	lines    bytes.Buffer
	streams  map[string]*stream.Stream
	order    []string
	seen     int
	requests int
	headers  []string
}

// Refusal is what to answer instead of taking a request.
type Refusal struct {
	Status     int
	Code       codes.Code
	RetryAfter time.Duration
	// AfterLines takes so many lines of NDJSON before it refuses the rest, and says so.
	AfterLines int
}

// Start runs a receiver until the test ends.
func Start(t *testing.T) *Receiver {
	t.Helper()
	r := &Receiver{t: t, streams: map[string]*stream.Stream{}}
	httpServer := httptest.NewServer(r)
	t.Cleanup(httpServer.Close)
	r.http = httpServer.Listener.Addr().String()

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	require.NoError(t, err)
	grpcServer := grpc.NewServer()
	tokenpulsev1.RegisterTokenStreamServiceServer(grpcServer, r)
	var served sync.WaitGroup
	served.Go(func() { _ = grpcServer.Serve(listener) })
	t.Cleanup(func() {
		grpcServer.Stop()
		served.Wait()
	})
	r.grpc = listener.Addr().String()
	return r
}

// Endpoint returns where the receiver listens for a transport.
func (r *Receiver) Endpoint(transport send.Transport) string {
	if transport == send.GRPC || transport == send.GRPCStream {
		return r.grpc
	}
	return r.http
}

// Refuse refuses the next requests, one each.
func (r *Receiver) Refuse(refusals ...Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals = refusals
}

// Reject says of every request that so many items in it were wrong.
func (r *Receiver) Reject(items int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rejects = items
}

// Seen returns how many lines (NDJSON) or messages have arrived, whether taken yet or not.
func (r *Receiver) Seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// Requests returns how many requests were taken.
func (r *Receiver) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// Authorizations returns the authorization header of every request.
func (r *Receiver) Authorizations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.headers)
}

// Streams returns what the taken requests told, in the order of their start.
func (r *Receiver) Streams() []*stream.Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lines.Len() > 0 {
		streams, err := recording.Read(bytes.NewReader(r.lines.Bytes()))
		require.NoError(r.t, err)
		return streams
	}
	var out []*stream.Stream
	for _, id := range r.order {
		out = append(out, r.streams[id])
	}
	slices.SortStableFunc(out, func(a, b *stream.Stream) int { return int(a.Start - b.Start) })
	return out
}

func (r *Receiver) refusal(authorization string) (Refusal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers = append(r.headers, authorization)
	if len(r.refusals) == 0 {
		return Refusal{}, false
	}
	first := r.refusals[0]
	r.refusals = r.refusals[1:]
	return first, true
}

// ServeHTTP answers as contract.md says.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path != "/v1/tokens" || request.Method != http.MethodPost {
		http.NotFound(w, request)
		return
	}
	if refused, ok := r.refusal(request.Header.Get("Authorization")); ok {
		if refused.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(refused.RetryAfter.Seconds())))
		}
		if refused.AfterLines > 0 {
			r.refuseRest(w, request.Body, refused)
			return
		}
		http.Error(w, "not now", refused.Status)
		return
	}
	var err error
	switch contentType := request.Header.Get("Content-Type"); contentType {
	case "application/x-ndjson":
		err = r.takeLines(request.Body)
	case "application/json":
		err = r.takeMessage(request.Body, protojson.Unmarshal)
	case "application/x-protobuf":
		err = r.takeMessage(request.Body, proto.Unmarshal)
	default:
		http.Error(w, contentType, http.StatusUnsupportedMediaType)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.rejects > 0 {
		fmt.Fprintf(w, `{"accepted":0,"rejected":%d,"errors":[{"line":1,"message":"wrong"}]}`, r.rejects)
		return
	}
	_, _ = io.WriteString(w, `{"accepted":1,"rejected":0,"errors":[]}`)
}

func (r *Receiver) refuseRest(w http.ResponseWriter, body io.Reader, refused Refusal) {
	lines := bufio.NewScanner(body)
	for range refused.AfterLines {
		lines.Scan()
		r.mu.Lock()
		r.lines.WriteString(lines.Text() + "\n")
		r.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close")
	w.WriteHeader(refused.Status)
	fmt.Fprintf(w, `{"accepted":%d,"rejected":1,"errors":[{"message":"full"}]}`, refused.AfterLines-1)
}

func (r *Receiver) takeLines(body io.Reader) error {
	lines := bufio.NewScanner(body)
	var all []string
	for lines.Scan() {
		all = append(all, lines.Text())
		r.see()
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines.WriteString(strings.Join(all, "\n") + "\n")
	return nil
}

func (r *Receiver) takeMessage(body io.Reader, decode func([]byte, proto.Message) error) error {
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	r.see()
	var message tokenpulsev1.ExportTokenStreamsRequest
	if err := decode(b, &message); err != nil {
		return err
	}
	return r.take(&message)
}

func (r *Receiver) see() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
}

// Export takes one batch.
func (r *Receiver) Export(ctx context.Context, message *tokenpulsev1.ExportTokenStreamsRequest) (*tokenpulsev1.ExportTokenStreamsResponse, error) {
	if err := r.grpcRefusal(ctx); err != nil {
		return nil, err
	}
	r.see()
	if err := r.take(message); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return r.response(), nil
}

// Stream takes batches until the sender closes it.
func (r *Receiver) Stream(call grpc.ClientStreamingServer[tokenpulsev1.ExportTokenStreamsRequest, tokenpulsev1.ExportTokenStreamsResponse]) error {
	if err := r.grpcRefusal(call.Context()); err != nil {
		return err
	}
	for {
		message, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return call.SendAndClose(r.response())
		}
		if err != nil {
			return err
		}
		r.see()
		if err := r.take(message); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
	}
}

func (r *Receiver) response() *tokenpulsev1.ExportTokenStreamsResponse {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.rejects == 0 {
		return &tokenpulsev1.ExportTokenStreamsResponse{}
	}
	return &tokenpulsev1.ExportTokenStreamsResponse{PartialSuccess: &tokenpulsev1.ExportTokenStreamsPartialSuccess{
		RejectedTokenStreams: r.rejects, ErrorMessage: "wrong",
	}}
}

func (r *Receiver) grpcRefusal(ctx context.Context) error {
	incoming, _ := metadata.FromIncomingContext(ctx)
	refused, ok := r.refusal(strings.Join(incoming.Get("authorization"), ","))
	if !ok {
		return nil
	}
	s := status.New(refused.Code, "not now")
	if refused.RetryAfter > 0 {
		s, _ = s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(refused.RetryAfter)})
	}
	return s.Err()
}

// take reads the wire schema as its comments define it.
func (r *Receiver) take(message *tokenpulsev1.ExportTokenStreamsRequest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, group := range message.GetResourceTokenStreams() {
		for _, part := range group.GetTokenStreams() {
			if err := r.takePart(group, part); err != nil {
				return err
			}
		}
	}
	return nil
}

var vantages = map[tokenpulsev1.Vantage]string{0: "", 1: "client", 2: "gateway", 3: "server", 4: "engine"}

var channels = map[tokenpulsev1.Channel]timeline.Channel{
	0: timeline.Content, 1: timeline.Reasoning, 2: timeline.ToolCall,
}

func (r *Receiver) takePart(group *tokenpulsev1.ResourceTokenStreams, part *tokenpulsev1.TokenStream) error {
	s, ok := r.streams[part.GetStreamId()]
	if start := part.GetStart(); start != nil {
		if ok {
			return fmt.Errorf("stream %q starts twice", part.GetStreamId())
		}
		s = &stream.Stream{
			ID: part.GetStreamId(), Start: int64(start.GetTimeUnixNano()),
			TraceID: start.GetTraceId(), SpanID: start.GetSpanId(), ParentSpanID: start.GetParentSpanId(),
			Vantage: vantages[start.GetVantage()], Attributes: attributes(start.GetAttributes()),
			Resource: &stream.Resource{Attributes: attributes(group.GetResource().GetAttributes())},
		}
		r.streams[s.ID] = s
		r.order = append(r.order, s.ID)
	} else if !ok {
		return fmt.Errorf("stream %q is unknown", part.GetStreamId())
	}
	if at := part.GetScheduledTimeUnixNano(); at != 0 {
		s.Scheduled = int64(at)
	}
	for _, run := range part.GetChunkRuns() {
		s.Chunks = append(s.Chunks, chunksOf(run)...)
	}
	if end := part.GetEnd(); end != nil {
		s.End = &stream.End{
			Time: int64(end.GetTimeUnixNano()), FinishReason: end.GetFinishReason(), Error: end.GetError(),
			Cancelled: end.GetCancelled(), Attributes: attributes(end.GetAttributes()),
		}
		if u := end.GetUsage(); u != nil {
			s.End.Usage = &stream.Usage{
				InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
				ReasoningTokens: u.ReasoningTokens, CachedInputTokens: u.CachedInputTokens,
			}
		}
	}
	return nil
}

func chunksOf(run *tokenpulsev1.ChunkRun) []stream.Chunk {
	unit := max(int64(run.GetDeltaUnitNanos()), 1)
	at := int64(run.GetTimeUnixNano())
	var out []stream.Chunk
	for i, delta := range run.GetTimeDeltas() {
		at += delta * unit
		c := stream.Chunk{Time: at, Tokens: 1, Channel: channels[run.GetChannel()]}
		if len(run.GetTokens()) > 0 {
			c.Tokens = run.GetTokens()[i]
		}
		if run.FirstSequenceNumber != nil {
			c.Sequence, c.Sequenced = run.GetFirstSequenceNumber()+uint64(i), true
		}
		out = append(out, c)
	}
	return out
}

func attributes(pairs []*commonv1.KeyValue) stream.Attributes {
	var out stream.Attributes
	for _, pair := range pairs {
		if out == nil {
			out = stream.Attributes{}
		}
		out[pair.GetKey()] = value(pair.GetValue())
	}
	return out
}

func value(v *commonv1.AnyValue) any {
	switch v := v.GetValue().(type) {
	case *commonv1.AnyValue_StringValue:
		return v.StringValue
	case *commonv1.AnyValue_BoolValue:
		return v.BoolValue
	case *commonv1.AnyValue_IntValue:
		return v.IntValue
	case *commonv1.AnyValue_DoubleValue:
		return v.DoubleValue
	case *commonv1.AnyValue_ArrayValue:
		var out []any
		for _, element := range v.ArrayValue.GetValues() {
			out = append(out, value(element))
		}
		return out
	case *commonv1.AnyValue_KvlistValue:
		return attributes(v.KvlistValue.GetValues())
	default:
		return nil
	}
}
