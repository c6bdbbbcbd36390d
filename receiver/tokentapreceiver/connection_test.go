// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
)

// frame is a WebSocket frame with a text of less than 64 KiB. That of a client is masked with zeros.
func frame(text string, masked bool) []byte {
	head, mask := []byte{0x81, 126}, []byte(nil)
	if masked {
		head[1] |= 0x80
		mask = make([]byte, 4)
	}
	head = binary.BigEndian.AppendUint16(head, uint16(len(text)))
	return append(append(head, mask...), text...)
}

const (
	responseCreate  = `{"type":"response.create"}`
	responseCreated = `{"type":"response.created","event_id":"e","response":{"id":"resp_1","object":"realtime.response"}}`
	responseDelta   = `{"type":"response.output_text.delta","event_id":"e","response_id":"resp_1","delta":"hi"}`
	responseDone    = `{"type":"response.done","event_id":"e","response":{"id":"resp_1","status":"completed","usage":{"input_tokens":4,"output_tokens":2}}}`
)

// upgrade answers with an upgrade to WebSocket and serves the connection.
func upgrade(serve func(connection net.Conn, reader *bufio.Reader)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		connection, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer connection.Close()
		fmt.Fprint(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n")
		serve(connection, buffered.Reader)
	}
}

// connect opens a WebSocket connection to OpenAI's API through the tap.
func connect(t *testing.T, p *tap) (net.Conn, *bufio.Reader) {
	t.Helper()
	return connectTo(t, p, "/v1/realtime?model=gpt-r")
}

func connectTo(t *testing.T, p *tap, path string) (net.Conn, *bufio.Reader) {
	t.Helper()
	connection := p.dial()
	fmt.Fprint(connection, "GET "+path+" HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nTraceparent: "+traceparent+"\r\n\r\n")
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	return connection, reader
}

// Each response on a connection has a span, which starts with the client's request for it.
func TestConnection_EachResponseHasASpan(t *testing.T) {
	request := frame(responseCreate, true)
	var received []byte
	p := start(t, upgrade(func(connection net.Conn, reader *bufio.Reader) {
		for range 2 {
			got := make([]byte, len(request))
			_, _ = io.ReadFull(reader, got)
			received = append(received, got...)
			for _, message := range []string{responseCreated, responseDelta, responseDelta, responseDone} {
				_, _ = connection.Write(frame(message, false))
			}
		}
		_, _ = io.Copy(io.Discard, reader)
	}))
	connection, reader := connect(t, p)
	expected := append(append(frame(responseCreated, false), append(frame(responseDelta, false), frame(responseDelta, false)...)...), frame(responseDone, false)...)
	var sentAt [2]int64
	for i := range sentAt {
		time.Sleep(2 * time.Millisecond)
		sentAt[i] = time.Now().UnixNano()
		_, err := connection.Write(request)
		require.NoError(t, err)
		got := make([]byte, len(expected))
		_, err = io.ReadFull(reader, got)
		require.NoError(t, err)
		require.Equal(t, expected, got)
	}
	for i, span := range p.spansAfter(2) { // while the connection is open
		all := attributesOf(span)
		require.Equal(t, "success", all["tokenpulse.outcome"])
		require.Equal(t, "gpt-r", all["gen_ai.request.model"])
		require.EqualValues(t, 2, all["gen_ai.usage.output_tokens"])
		require.Equal(t, "b7ad6b7169203331", span.ParentSpanID().String())
		require.GreaterOrEqual(t, int64(span.StartTimestamp()), sentAt[i])
		times, _ := arrivals(t, span)
		require.Len(t, times, 2)
	}
	require.Equal(t, append(request, request...), received)
}

func TestConnection_EndsOpenResponses(t *testing.T) {
	for name, c := range map[string]struct {
		clientCloses, resets bool
		outcome              string
	}{
		"the client closes":   {true, false, "cancelled"},
		"the client resets":   {true, true, "cancelled"},
		"the upstream closes": {false, false, "incomplete"},
		"the upstream resets": {false, true, "incomplete"},
	} {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan struct{})
			p := start(t, upgrade(func(connection net.Conn, reader *bufio.Reader) {
				_, _ = connection.Write(frame(responseCreated, false))
				_, _ = connection.Write(frame(responseDelta, false))
				<-arrived // a reset would overtake the frames
				if c.clientCloses {
					_, _ = io.Copy(io.Discard, reader) // until the close of the client arrives
				} else if c.resets {
					_ = connection.(*net.TCPConn).SetLinger(0)
				}
			}))
			connection, reader := connect(t, p)
			_, err := io.ReadFull(reader, make([]byte, len(frame(responseCreated, false))+len(frame(responseDelta, false))))
			close(arrived)
			require.NoError(t, err)
			if c.clientCloses {
				if c.resets {
					require.NoError(t, connection.(*net.TCPConn).SetLinger(0))
				}
			} else {
				_, err := reader.ReadByte()
				require.ErrorIs(t, err, io.EOF)
			}
			require.NoError(t, connection.Close())
			span := p.span()
			require.Equal(t, c.outcome, attributesOf(span)["tokenpulse.outcome"])
			times, _ := arrivals(t, span)
			require.Len(t, times, 1)
			require.Equal(t, true, attributesOf(span)["tokenpulse.start.unseen"])
		})
	}
}

// The status of response.done is the outcome: an incomplete response reached a limit of its own, but its end.
func TestConnection_OutcomeOfEachStatus(t *testing.T) {
	for name, c := range map[string]struct{ status, outcome, kind, finish string }{
		"completed":              {`"status":"completed","status_details":null`, "success", "", "completed"},
		"cancelled by a client":  {`"status":"cancelled","status_details":{"type":"cancelled","reason":"client_cancelled"}`, "cancelled", "", "cancelled"},
		"cancelled by speech":    {`"status":"cancelled","status_details":{"type":"cancelled","reason":"turn_detected"}`, "cancelled", "", "cancelled"},
		"incomplete":             {`"status":"incomplete","status_details":{"type":"incomplete","reason":"max_output_tokens"}`, "success", "", "incomplete"},
		"failed":                 {`"status":"failed","status_details":{"type":"failed","error":{"type":"server_error","code":"c"}}`, "error", "server_error", "failed"},
		"failed without details": {`"status":"failed","status_details":null`, "error", "message_only", "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			done := frame(strings.Replace(responseDone, `"status":"completed"`, c.status, 1), false)
			p := start(t, upgrade(func(connection net.Conn, _ *bufio.Reader) {
				_, _ = connection.Write(slices.Concat(frame(responseCreated, false), frame(responseDelta, false), done))
			}))
			_, reader := connect(t, p)
			_, err := io.Copy(io.Discard, reader)
			require.NoError(t, err)
			all := attributesOf(p.span())
			require.Equal(t, c.outcome, all["tokenpulse.outcome"])
			require.Equal(t, []any{c.finish}, all["gen_ai.response.finish_reasons"])
			if c.kind == "" {
				require.NotContains(t, all, "error.type")
			} else {
				require.Equal(t, c.kind, all["error.type"])
			}
			times, _ := arrivals(t, p.span())
			require.Len(t, times, 1)
		})
	}
}

func TestConnection_RefusedUpgradeIsAnError(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	answer := requestTo(t, p, "GET /v1/realtime?model=gpt-r HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n")
	require.Contains(t, answer, "HTTP/1.1 401")
	require.Equal(t, "401", attributesOf(p.span())["error.type"])
}

func TestConnection_OfAnotherServiceIsCounted(t *testing.T) {
	for path, unrecognised := range map[string]int64{"/chat": 1, "/v1/realtime": 0} {
		p := start(t, upgrade(func(connection net.Conn, _ *bufio.Reader) { _, _ = connection.Write(frame(`{"a":1}`, false)) }))
		answer := requestTo(t, p, "GET "+path+" HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		require.Contains(t, answer, `{"a":1}`)
		p.receiver.handling.Lock() // waits for the handler
		counted := p.counter("exchanges_unrecognised")
		p.receiver.handling.Unlock()
		require.Equal(t, unrecognised, counted, path)
		require.Zero(t, p.spans.SpanCount())
	}
}

// numberedResponse is a message of the response with the number.
func numberedResponse(message string, number int) []byte {
	return frame(strings.ReplaceAll(message, "resp_1", fmt.Sprint("resp_", number)), false)
}

// The start of a request is not kept while 16 others wait, and the oldest of 16 open
// responses is evicted. Both are counted while the connection is open.
func TestConnection_CountsWhatIsBeyondItsLimits(t *testing.T) {
	const requests = 18
	p := start(t, upgrade(func(connection net.Conn, reader *bufio.Reader) {
		_, _ = io.ReadFull(reader, make([]byte, requests*len(frame(responseCreate, true))))
		for _, message := range []string{responseCreated, responseDelta, responseDone} {
			for i := range requests {
				_, _ = connection.Write(numberedResponse(message, i))
			}
		}
		_, _ = io.Copy(io.Discard, reader)
	}))
	connection, reader := connect(t, p)
	for range requests {
		_, err := connection.Write(frame(responseCreate, true))
		require.NoError(t, err)
	}
	for _, message := range []string{responseCreated, responseDelta, responseDone} {
		for i := range requests {
			expected := numberedResponse(message, i)
			got := make([]byte, len(expected))
			_, err := io.ReadFull(reader, got)
			require.NoError(t, err)
			require.Equal(t, expected, got)
		}
	}
	for i, span := range p.spansAfter(requests) {
		all := attributesOf(span)
		if i < 2 {
			require.Equal(t, "incomplete", all["tokenpulse.outcome"])
			require.Equal(t, "collector", all["tokenpulse.cut"])
			require.NotContains(t, all, "error.type")
		} else {
			require.Equal(t, "success", all["tokenpulse.outcome"])
		}
		require.Equal(t, i >= 16, all["tokenpulse.start.unseen"] != nil, i)
	}
	require.EqualValues(t, 2, p.counter("requests_unobserved"))
	require.Equal(t, map[string]int64{"open_responses": 2}, p.counterBy("limit", "exchanges_cut"))
}

// observeUpgrade returns an exchange that asks for an upgrade.
func (p *tap) observeUpgrade(t *testing.T) *exchange {
	t.Helper()
	x := p.begin(http.MethodGet, "/v1/realtime")
	x.request.Header.Set("Upgrade", "websocket")
	return x
}

// upgraded returns an exchange whose answer is an upgrade, its connection to the upstream, and
// the upstream's end of that.
func upgraded(t *testing.T, p *tap) (x *exchange, connection io.ReadWriteCloser, upstream net.Conn) {
	t.Helper()
	x = p.observeUpgrade(t)
	tapSide, upstream := net.Pipe()
	t.Cleanup(func() { _, _ = tapSide.Close(), upstream.Close() })
	require.NoError(t, upstream.SetDeadline(time.Now().Add(time.Minute)))
	response := &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: http.Header{"Upgrade": {"websocket"}}, Body: tapSide, Request: x.request}
	require.NoError(t, x.answer(response))
	return x, response.Body.(io.ReadWriteCloser), upstream
}

// While the server's side is decoded, which its mutex stands for here, what
// the client sends is forwarded.
func TestConnection_ForwardsTheClientWhileTheServerIsDecoded(t *testing.T) {
	p := start(t, answerChat)
	x, connection, upstream := upgraded(t, p)
	x.decoding.mutex.Lock()
	defer x.decoding.mutex.Unlock()
	request := frame(responseCreate, true)
	go func() {
		_, _ = connection.Write(request)
		_ = connection.(interface{ CloseWrite() error }).CloseWrite()
		_ = connection.Close()
	}()
	got, err := io.ReadAll(upstream)
	require.NoError(t, err)
	require.Equal(t, request, got)
}

// What the server sent is forwarded before it is decoded.
func TestConnection_ForwardsTheServerBeforeItIsDecoded(t *testing.T) {
	p := start(t, answerChat)
	_, connection, upstream := upgraded(t, p)
	go func() {
		_, _ = upstream.Write(frame(responseCreated, false))
		_, _ = upstream.Write(frame(responseDone, false))
		_ = upstream.Close()
	}()
	buffer := make([]byte, bufferSize)
	for range 2 {
		_, err := connection.Read(buffer)
		require.NoError(t, err)
	}
	require.Zero(t, p.counter("exchanges_finished"))
	_, err := connection.Read(buffer)
	require.ErrorIs(t, err, io.EOF)
	require.EqualValues(t, 1, p.counter("exchanges_finished"))
}

// An upstream that accepts nothing more has closed the connection.
func TestConnection_FailedWriteIsTheCloseOfTheUpstream(t *testing.T) {
	p := start(t, answerChat)
	x, connection, upstream := upgraded(t, p)
	go func() { _, _ = upstream.Write(append(frame(responseCreated, false), frame(responseDelta, false)...)) }()
	_, err := connection.Read(make([]byte, bufferSize))
	require.NoError(t, err)
	require.NoError(t, upstream.Close())
	_, err = connection.Write(frame(responseCreate, true))
	require.Error(t, err)
	x.finish()
	all := attributesOf(p.span())
	require.Equal(t, "incomplete", all["tokenpulse.outcome"])
	require.Equal(t, "upstream_cut", all["error.type"])
}

// At max_stream_duration, the open responses are sent as spans, and nothing is kept.
func TestConnection_ReleasesItsMemoryAtTheLimitOfTime(t *testing.T) {
	p := start(t, answerChat)
	x, connection, upstream := upgraded(t, p)
	decoder := weak.Make(x.decoding.upgraded.client.Load())
	go func() { _, _ = upstream.Write(append(frame(responseCreated, false), frame(responseDelta, false)...)) }()
	buffer := make([]byte, bufferSize)
	_, err := connection.Read(buffer)
	require.NoError(t, err)
	go func() { _, _ = connection.Read(buffer) }() // decodes, and blocks
	require.Eventually(t, func() bool {
		x.decoding.mutex.Lock()
		defer x.decoding.mutex.Unlock()
		return x.decoding.upgraded.pending.bytes == nil
	}, time.Minute, time.Millisecond)
	x.decoding.expire()
	require.Eventually(t, func() bool {
		runtime.GC()
		return decoder.Value() == nil
	}, time.Minute, time.Millisecond)
	all := attributesOf(p.span())
	require.Equal(t, "incomplete", all["tokenpulse.outcome"])
	require.Equal(t, "collector", all["tokenpulse.cut"])
	require.Equal(t, map[string]int64{"max_stream_duration": 1}, p.counterBy("limit", "exchanges_cut"))
	go func() { _, _ = connection.Write(frame(responseCreate, true)) }()
	got := make([]byte, len(frame(responseCreate, true)))
	_, err = io.ReadFull(upstream, got)
	require.NoError(t, err)
	require.Equal(t, frame(responseCreate, true), got)
}

// An upgrade that cannot be forwarded is an error, and its connection is closed.
func TestConnection_ClosesTheUpstreamAfterAnUpgradeToAnotherProtocol(t *testing.T) {
	for name, c := range map[string]struct{ asked, given string }{
		"another protocol":    {"Connection: Upgrade, close\r\nUpgrade: websocket\r\n", "Connection: Upgrade\r\nUpgrade: other\r\n"},
		"not asked for":       {"Connection: close\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n"},
		"not of the next hop": {"Connection: Upgrade, close\r\nUpgrade: websocket\r\n", "Upgrade: websocket\r\n"},
	} {
		for _, streams := range []int{0, 1} { // not observed, observed
			t.Run(fmt.Sprint(name, ", max_streams ", streams), func(t *testing.T) {
				closed := make(chan error, 1)
				p := start(t, func(w http.ResponseWriter, _ *http.Request) {
					connection, buffered, err := http.NewResponseController(w).Hijack()
					if err != nil {
						closed <- err
						return
					}
					defer connection.Close()
					fmt.Fprint(connection, "HTTP/1.1 101 Switching Protocols\r\n"+c.given+"\r\n")
					_ = connection.SetReadDeadline(time.Now().Add(30 * time.Second))
					_, err = buffered.ReadByte()
					closed <- err
				})
				p.receiver.cfg.MaxStreams = streams
				answer := requestTo(t, p, "GET /v1/realtime HTTP/1.1\r\nHost: h\r\n"+c.asked+"\r\n")
				require.Contains(t, answer, "HTTP/1.1 502")
				require.Contains(t, answer, `{"error":{"message":"token_tap: the upstream switched to a protocol that the request does not ask for; check its endpoint","type":"unexpected_upgrade"}}`)
				require.Empty(t, p.logs.FilterMessageSnippet("reach").All())
				require.ErrorIs(t, <-closed, io.EOF)
				if streams > 0 && name != "not asked for" {
					all := attributesOf(p.span())
					require.Equal(t, "error", all["tokenpulse.outcome"])
					require.Equal(t, "unexpected_upgrade", all["error.type"])
				}
			})
		}
	}
}

// What cannot be read is counted, even if it belongs to no response.
func TestConnection_CountsWhatCannotBeRead(t *testing.T) {
	p := start(t, upgrade(func(connection net.Conn, _ *bufio.Reader) { _, _ = connection.Write(frame("no JSON", false)) }))
	answer := requestTo(t, p, "GET /v1/realtime HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	require.Contains(t, answer, "no JSON")
	require.Eventually(t, func() bool { return p.counter("unparsed") == 1 }, time.Minute, time.Millisecond)
	require.Zero(t, p.spans.SpanCount())
}
