// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/metadata"
)

// Beyond max_streams, exchanges are forwarded without a span.
func TestLimits_Streams(t *testing.T) {
	release := make(chan struct{})
	p := start(t, func(w http.ResponseWriter, req *http.Request) {
		send := stream(w)
		if req.URL.Path == "/slow"+chatPath {
			<-release
		}
		send(chatAnswer(1))
	}, func(cfg *Config) { cfg.MaxStreams = 1 })
	end := sync.OnceFunc(func() { close(release) })
	defer end() // or a failed test would wait for the upstream
	slow := p.open("/slow"+chatPath, chatRequest)
	_, body := p.post(chatPath, chatRequest)
	require.Equal(t, chatAnswer(1), body)
	require.EqualValues(t, 1, p.counter("exchanges_unobserved"))
	require.Zero(t, p.spans.SpanCount())
	end()
	_, err := io.Copy(io.Discard, slow.Body)
	require.NoError(t, err)
	p.spansAfter(1)
	p.post(chatPath, chatRequest)
	p.spansAfter(2)
}

func TestLimits_ChunksPerStream(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) { stream(w)(chatAnswer(10)) }, func(cfg *Config) { cfg.MaxChunksPerStream = 4 })
	_, body := p.post(chatPath, chatRequest)
	require.Equal(t, chatAnswer(10), body)
	span := p.span()
	times, _ := arrivals(t, span)
	require.Len(t, times, 4)
	require.EqualValues(t, 6, attributesOf(span)["tokenpulse.chunk.dropped"])
	require.Equal(t, map[string]int64{"max_chunks_per_stream": 6}, p.counterBy("limit", "chunks_dropped"))
}

// At max_stream_duration, a silent exchange is sent as a span, gives its place to another one
// and releases its memory. It is forwarded to its end.
// An event that is skipped for its length may hold tokens: no later chunk is the first one, and no time since
// the chunk before it is a gap. Around a long string or array, the event is read.
func TestLimits_LengthOfAnEvent(t *testing.T) {
	long := func(member string) string {
		return `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]` + member + "}\n\n"
	}
	members := long(strings.Repeat(`,"a":1`, 1024))
	for name, test := range map[string]struct {
		answer                     string
		chunks, dropped            int
		untimed, unparsed, outcome any
	}{
		"before the first token":         {roleEvent + members + tokenEvent + tokenEvent + usageEvent + doneEvent, 0, 2, "unparsed", []any{"too_long"}, "success"},
		"between tokens":                 {tokenEvent + tokenEvent + members + tokenEvent + doneEvent, 2, 1, nil, []any{"too_long"}, "success"},
		"after the last token":           {tokenEvent + tokenEvent + members + doneEvent, 2, 0, nil, []any{"too_long"}, "success"},
		"without another token":          {roleEvent + members + doneEvent, 0, 0, "unparsed", []any{"too_long"}, "success"},
		"a long string and a token":      {long(`,"image":"`+strings.Repeat("A", 1<<20)+`"`) + tokenEvent + doneEvent, 2, 0, nil, nil, "success"},
		"a long array and a token":       {long(`,"prompt_token_ids":[`+strings.Repeat("1234,", 1<<18)+`5]`) + tokenEvent + doneEvent, 2, 0, nil, nil, "success"},
		"a whole answer with an image":   {strings.TrimPrefix(long(`,"image":"`+strings.Repeat("A", 1<<20)+`"`), "data: "), 0, 0, "whole", nil, "success"},
		"a whole answer that is skipped": {strings.TrimPrefix(members, "data: "), 0, 0, "unparsed", []any{"too_long"}, "success"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, test.answer) }, func(cfg *Config) { cfg.MaxEventBytes = 1024 })
			_, body := p.post(chatPath, chatRequest)
			require.Equal(t, test.answer, body)
			span := p.span()
			times, _ := arrivals(t, span)
			all := attributesOf(span)
			require.Len(t, times, test.chunks)
			require.Equal(t, test.untimed, all["tokenpulse.tap.untimed"])
			require.Equal(t, test.unparsed, all["tokenpulse.tap.unparsed"])
			require.Equal(t, test.outcome, all["tokenpulse.outcome"])
			require.EqualValues(t, test.dropped, p.counterBy("limit", "chunks_dropped")["max_event_bytes"])
		})
	}
}

func TestLimits_StreamDuration(t *testing.T) {
	for name, sent := range map[string]string{"before the answer": "", "within the answer": roleEvent + tokenEvent} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			end := sync.OnceFunc(func() { close(release) })
			p := start(t, func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/slow"+chatPath {
					if sent != "" {
						stream(w)(sent)
					}
					<-release
				}
				stream(w)(chatAnswer(1))
			}, func(cfg *Config) { cfg.MaxStreams, cfg.MaxStreamDuration = 1, 500*time.Millisecond })
			t.Cleanup(end)
			answer, slow := make(chan string, 1), client(t)
			go func() {
				var body []byte
				if response, err := slow.Post(p.url+"/slow"+chatPath, "application/json", strings.NewReader(chatRequest)); err == nil {
					body, _ = io.ReadAll(response.Body)
					_ = response.Body.Close()
				}
				answer <- string(body)
			}()
			all := attributesOf(p.span())
			require.Equal(t, "incomplete", all["tokenpulse.outcome"])
			require.Equal(t, "collector", all["tokenpulse.cut"])
			require.NotContains(t, all, "tokenpulse.tap.unparsed")
			require.Equal(t, map[string]int64{"max_stream_duration": 1}, p.counterBy("limit", "exchanges_cut"))
			require.Zero(t, p.receiver.open.Load())
			end()
			require.Equal(t, sent+chatAnswer(1), <-answer)
			p.receiver.handling.Lock() // waits for the handler
			defer p.receiver.handling.Unlock()
			require.Zero(t, p.receiver.open.Load())
			require.Zero(t, p.receiver.memory.Held())
			p.spansAfter(1)
		})
	}
}

// The copy of a request is released when its answer begins, not when it ends.
func TestLimits_RequestCopyEndsWhenTheAnswerBegins(t *testing.T) {
	release := make(chan struct{})
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		send := stream(w)
		send(tokenEvent)
		<-release
	})
	defer close(release)
	request := numbered(100 << 10)
	answer := p.open(chatPath, request)
	_, err := io.ReadFull(answer.Body, make([]byte, len(tokenEvent)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.receiver.memory.Held() < int64(len(request)) }, time.Minute, time.Millisecond)
}

func TestLimits_StreamDurationReleasesMemory(t *testing.T) {
	p := start(t, answerChat)
	x := p.beginChat()
	decoder := weak.Make(x.decoding.reader.decoder)
	x.pending = arrival{[]byte(tokenEvent), x.decoding.now()}
	x.decode()
	x.decoding.expire()
	p.span()
	require.Eventually(t, func() bool {
		runtime.GC()
		return decoder.Value() == nil
	}, time.Minute, time.Millisecond)
	x.pending = arrival{[]byte(tokenEvent), x.decoding.now()}
	x.decode()
}

// A panic in the timer would end the Collector.
func TestLimits_StreamDurationSurvivesAPanic(t *testing.T) {
	p := start(t, answerChat)
	x := p.begin(http.MethodPost, chatPath)
	x.decoding.call.decoding = nil // makes its end panic
	x.decoding.expire()
	require.Len(t, p.logs.FilterMessage("failed to decode an exchange, which is forwarded all the same; report this bug with the stack").All(), 1)
	require.Zero(t, p.receiver.open.Load())
}

// A request above a MiB passes whole; the model comes from the answer.
func TestLimits_RequestCopy(t *testing.T) {
	p := start(t, answerChat)
	p.post(chatPath, `{"messages":"`+strings.Repeat("x", maxRequestCopy)+`","model":"gpt-x","stream":true}`)
	require.Equal(t, "m-1", attributesOf(p.span())["gen_ai.request.model"])
	require.EqualValues(t, 1, p.counter("requests_truncated"))
}

// Without room for its copy, a request passes whole, too.
func TestLimits_MemoryOfRequests(t *testing.T) {
	p := start(t, answerChat)
	others := p.receiver.memory.Account()
	require.True(t, others.Take(p.receiver.cfg.MaxMemoryMiB<<20-blockBytes-1000)) // leaves room for a timeline and events
	p.post(chatPath, `{"messages":"`+numbered(blockBytes+1000)+`","model":"gpt-x","stream":true}`)
	all := attributesOf(p.span())
	require.Equal(t, "m-1", all["gen_ai.request.model"])
	require.NotContains(t, all, "tokenpulse.tap.unparsed")
	require.EqualValues(t, 1, p.counter("requests_truncated"))
	others.Close()
	p.post(chatPath, chatRequest)
	require.Equal(t, "gpt-x", attributesOf(p.spansAfter(2)[1])["gen_ai.request.model"])
	require.Zero(t, p.held())
}

// Copies of requests leave half of the memory to answers.
func TestLimits_RequestsTakeHalfOfTheMemory(t *testing.T) {
	p := start(t, answerChat)
	others := p.receiver.memory.Account()
	require.True(t, others.Take(p.receiver.cfg.MaxMemoryMiB<<19))
	p.post(chatPath, chatRequest)
	span := p.span()
	require.Equal(t, "m-1", attributesOf(span)["gen_ai.request.model"])
	times, _ := arrivals(t, span)
	require.Len(t, times, 3)
	require.EqualValues(t, 1, p.counter("requests_truncated"))
}

// The alert on limits compares these gauges.
func TestLimits_AreReportedBesideWhatIsUsed(t *testing.T) {
	p := start(t, answerChat)
	x := p.observeUpgrade(t)
	require.True(t, x.decoding.memory.Take(1000))
	for name, expected := range map[string]int{
		"memory_held": 1000, "memory_limit": p.receiver.cfg.MaxMemoryMiB << 20,
		"streams_open": 1, "streams_limit": p.receiver.cfg.MaxStreams,
		"queue_size": 0, "queue_capacity": p.receiver.cfg.MaxQueuedSpans,
	} {
		metric, err := p.telemetry.GetMetric("otelcol_receiver_token_tap_" + name)
		require.NoError(t, err)
		points := metric.Data.(metricdata.Gauge[int64]).DataPoints
		require.Len(t, points, 1, name)
		require.EqualValues(t, expected, points[0].Value, name)
	}
}

// held returns the bytes that exchanges hold once all are over.
func (p *tap) held() int64 {
	p.receiver.handling.Lock() // waits for the handlers
	defer p.receiver.handling.Unlock()
	return p.receiver.memory.Held()
}

// Without room in max_memory_mib, an answer passes whole: the span says that parts could not be read, and a
// self-metric counts it. The timeline ends before the first part without room: it has no hole. Once there is room
// again, the next answer is read.
func TestLimits_MemoryOfAnswers(t *testing.T) {
	long := strings.Replace(tokenEvent, "hi", strings.Repeat("x", 2*bufferSize), 1) // not in one read
	answer := tokenEvent + long + tokenEvent + finishEvent + doneEvent
	for name, c := range map[string]struct {
		encoding string
		free     int
		tokens   int // without room
	}{
		"an event":             {"", 2 * blockBytes, 1},
		"a timeline":           {"", blockBytes / 2, 0},
		"a window of gzip":     {"gzip", 2 * blockBytes, 0},
		"a window of zlib":     {"deflate", 2 * blockBytes, 0},
		"a window of br":       {"br", 512 << 10, 0},
		"a window of zstd":     {"zstd", 1 << 20, 0},
		"one of two encodings": {"gzip, zstd", 1<<20 + 24<<10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			body := encoded(c.encoding, answer)
			p := start(t, func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				w.Header().Set("Content-Encoding", c.encoding)
				stream(w)(body)
			})
			others := p.receiver.memory.Account()
			require.True(t, others.Take(p.receiver.cfg.MaxMemoryMiB<<20-c.free))
			_, got := p.post(chatPath, chatRequest)
			require.Equal(t, body, got)
			span := p.span()
			require.Equal(t, []any{"memory"}, attributesOf(span)["tokenpulse.tap.unparsed"])
			times, _ := arrivals(t, span)
			require.Len(t, times, c.tokens)
			require.Equal(t, "success", attributesOf(span)["tokenpulse.outcome"])
			require.EqualValues(t, 1, p.counter("unparsed"))
			others.Close()
			require.Zero(t, p.held())
			p.post(chatPath, chatRequest)
			span = p.spansAfter(2)[1]
			require.NotContains(t, attributesOf(span), "tokenpulse.tap.unparsed")
			times, _ = arrivals(t, span)
			require.Len(t, times, 3)
			require.Zero(t, p.held())
		})
	}
}

// A message without room passes, too. What a connection holds is released at its end.
func TestLimits_MemoryOfConnections(t *testing.T) {
	delta := frame(strings.Replace(responseDelta, "hi", numbered(2*bufferSize), 1), false)
	answer := slices.Concat(frame(responseCreated, false), frame(responseDelta, false), delta, frame(responseDelta, false), frame(responseDone, false))
	p := start(t, upgrade(func(connection net.Conn, reader *bufio.Reader) {
		_, _ = io.ReadFull(reader, make([]byte, len(frame(responseCreate, true))))
		_, _ = connection.Write(answer)
	}))
	others := p.receiver.memory.Account()
	require.True(t, others.Take(p.receiver.cfg.MaxMemoryMiB<<20-blockBytes-2000))
	connection, reader := connect(t, p)
	_, err := connection.Write(frame(responseCreate, true))
	require.NoError(t, err)
	got, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, answer, got)
	span := p.span()
	require.Equal(t, []any{"memory"}, attributesOf(span)["tokenpulse.tap.unparsed"])
	require.Equal(t, "success", attributesOf(span)["tokenpulse.outcome"])
	times, _ := arrivals(t, span)
	require.Len(t, times, 1)
	require.NoError(t, connection.Close())
	others.Close()
	require.Zero(t, p.held())
	require.EqualValues(t, 1, p.counter("unparsed"))
	require.Equal(t, map[string]int64{"max_memory_mib": 1}, p.counterBy("limit", "chunks_dropped"))
}

// A timeline that found no room stays as it is when there is room again: a later chunk would look like the first one.
func TestLimits_MemoryFreedDuringAnAnswer(t *testing.T) {
	p := start(t, answerChat)
	others := p.receiver.memory.Account()
	require.True(t, others.Take(p.receiver.cfg.MaxMemoryMiB<<20))
	x := p.observeUpgrade(t)
	c := &call{decoding: x.decoding}
	for i := range 3 {
		c.Chunk(llmstream.Chunk{Time: int64(i + 1)})
		others.Close()
	}
	require.Zero(t, c.line.Len())
	require.EqualValues(t, 3, c.dropped)
}

// blockingConsumer waits until it is released.
type blockingConsumer struct {
	consumertest.Consumer
	entered, release chan struct{}
}

func (c *blockingConsumer) ConsumeTraces(context.Context, ptrace.Traces) error {
	c.entered <- struct{}{}
	<-c.release
	return nil
}

// A pipeline that blocks does not slow traffic: spans beyond the queue are dropped.
func TestLimits_QueuedSpans(t *testing.T) {
	next := &blockingConsumer{consumertest.NewNop(), make(chan struct{}, 10), make(chan struct{})}
	p := start(t, answerChat)
	upstream := p.receiver.cfg.Upstream.Endpoint
	p = startAt(t, next, func(cfg *Config) { cfg.Upstream.Endpoint, cfg.MaxQueuedSpans = upstream, 2 })
	defer close(next.release) // before the receiver stops
	p.post(chatPath, chatRequest)
	select {
	case <-next.entered:
	case <-time.After(time.Minute):
		t.Fatal("the pipeline got no span")
	}
	for range 5 {
		p.post(chatPath, chatRequest) // fails if the tap waits for the pipeline
	}
	require.Eventually(t, func() bool { return p.counter("spans_dropped") == 3 }, time.Minute, time.Millisecond)
}

func TestDelivery_CountsRefusedSpans(t *testing.T) {
	for name, err := range map[string]error{"refused": errRefused, "permanently refused": consumererror.NewPermanent(errRefused)} {
		t.Run(name, func(t *testing.T) {
			upstream := start(t, answerChat).receiver.cfg.Upstream.Endpoint
			p := startAt(t, consumertest.NewErr(err), func(cfg *Config) { cfg.Upstream.Endpoint = upstream })
			_, body := p.post(chatPath, chatRequest)
			require.Equal(t, chatAnswer(3), body)
			require.Eventually(t, func() bool { return p.counter("spans_dropped") == 1 }, time.Minute, time.Millisecond)
		})
	}
}

// The server may have read a request before it is closed.
func TestShutdown_AbortsLateRequests(t *testing.T) {
	p := start(t, answerChat)
	require.NoError(t, p.receiver.Shutdown(t.Context()))
	require.PanicsWithValue(t, http.ErrAbortHandler, func() {
		p.receiver.handle(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, chatPath, strings.NewReader(chatRequest)))
	})
}

// A shutdown cuts exchanges that do not finish in time. Their spans are sent.
func TestShutdown_CutsExchanges(t *testing.T) {
	sink := new(consumertest.TracesSink)
	upstream := start(t, func(w http.ResponseWriter, req *http.Request) {
		stream(w)(roleEvent + tokenEvent)
		<-req.Context().Done()
	}).receiver.cfg.Upstream.Endpoint
	cfg := createDefaultConfig().(*Config)
	cfg.Server.NetAddr.Endpoint, cfg.Upstream.Endpoint = "localhost:0", upstream
	r, err := newReceiver(cfg, receiver.Settings{
		ID: receivertest.NewNopSettings(metadata.Type).ID, TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	response, err := client(t).Post("http://"+r.address.String()+chatPath, "application/json", strings.NewReader(chatRequest))
	require.NoError(t, err)
	defer response.Body.Close()
	_, err = io.ReadFull(response.Body, make([]byte, len(roleEvent+tokenEvent)))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // half of it is for the queue
	defer cancel()
	require.NoError(t, r.Shutdown(ctx))
	require.NoError(t, r.Shutdown(ctx))
	require.Equal(t, 1, sink.SpanCount())
	all := attributesOf(sink.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0))
	require.Equal(t, "incomplete", all["tokenpulse.outcome"])
	require.Equal(t, "collector", all["tokenpulse.cut"])
}
