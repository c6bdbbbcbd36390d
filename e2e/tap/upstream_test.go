// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// A play is an exchange of a client with an upstream through a tap. The upstream writes
// the next piece of its answer only after the client has received those before: a piece
// that is held back on the way ends the play with an error.
type play struct {
	name, method, target string
	request              []byte
	requestHeader        http.Header

	status int
	header http.Header
	pieces [][]byte
	breaks bool          // the upstream breaks the connection after the last piece
	pause  time.Duration // before each piece

	trace    pcommon.TraceID
	progress chan int // bytes that the client has received
	ended    chan struct{}

	// What was seen. Times are Unix nanoseconds.
	stamps          []int64 // before each piece was written
	begun           int64   // before the request
	received, asked []byte  // by the client, by the upstream
	err             error   // of the client's reads
	sent            http.Header
	answered        int // the status that the client saw
}

func (p *play) body() []byte { return slices.Concat(p.pieces...) }

// pieceOf returns the index of the piece that holds the byte at an offset. Bytes beyond
// the body are in a piece of their own: they stand for its end.
func (p *play) pieceOf(offset int) int {
	for i, piece := range p.pieces {
		if offset < len(piece) {
			return i
		}
		offset -= len(piece)
	}
	return len(p.pieces)
}

// clock is a wall clock that does not jump.
var clock = time.Now()

func now() int64 { return clock.UnixNano() + int64(time.Since(clock)) }

// scriptedUpstream answers as the plays say. A request names its play in a header.
type scriptedUpstream struct {
	*httptest.Server
	plays sync.Map // by name
}

const playHeader = "X-Play"

func startScriptedUpstream(t *testing.T) *scriptedUpstream {
	t.Helper()
	u := &scriptedUpstream{}
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

func (u *scriptedUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, ok := u.plays.Load(r.Header.Get(playHeader))
	if !ok {
		http.Error(w, "no such play", http.StatusTeapot)
		return
	}
	p := found.(*play)
	defer close(p.ended)
	p.sent = r.Header.Clone()
	if p.status == http.StatusSwitchingProtocols {
		connection, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer connection.Close()
		_, _ = io.WriteString(connection, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		p.asked = make([]byte, len(p.request))
		_, _ = io.ReadFull(buffered, p.asked)
		p.writePieces(r.Context(), connection, func() {})
		return
	}
	p.asked, _ = io.ReadAll(r.Body)
	maps.Copy(w.Header(), p.header)
	w.WriteHeader(p.status)
	_ = http.NewResponseController(w).Flush()
	p.writePieces(r.Context(), w, func() { _ = http.NewResponseController(w).Flush() })
	if p.breaks {
		panic(http.ErrAbortHandler)
	}
}

func (p *play) writePieces(ctx context.Context, w io.Writer, flush func()) {
	written := 0
	for received := 0; ; {
		for received < written {
			select {
			case received = <-p.progress:
			case <-ctx.Done():
				return
			}
		}
		time.Sleep(p.pause)
		p.stamps = append(p.stamps, now())
		if len(p.stamps) > len(p.pieces) {
			return
		}
		piece := p.pieces[len(p.stamps)-1]
		_, _ = w.Write(piece)
		flush()
		written += len(piece)
	}
}

// perform lets a client ask the upstream through the tap at an address.
func (u *scriptedUpstream) perform(ctx context.Context, tap string, p *play) {
	p.progress, p.ended = make(chan int, len(p.body())+1), make(chan struct{})
	u.plays.Store(p.name, p)
	ctx, cancel := context.WithTimeout(ctx, collector.Patience)
	defer cancel()
	p.begun = now()
	answer, closeConnection, err := p.ask(ctx, tap)
	if p.err = err; err != nil {
		return
	}
	defer closeConnection()
	p.answered = answer.StatusCode
	buffer := make([]byte, 64<<10)
	for {
		n, err := answer.Body.Read(buffer)
		if p.received = append(p.received, buffer[:n]...); n > 0 {
			p.progress <- len(p.received)
		}
		if err != nil {
			if err != io.EOF {
				p.err = err
			}
			break
		}
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.err = ctx.Err() // the upstream did not get the request
	}
}

// passThrough has no connections in common with other clients, and does not ask for a
// content encoding.
var passThrough = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}

// ask sends the request. That of an upgrade is the client's first message: the answer has
// the rest of the connection as body.
func (p *play) ask(ctx context.Context, tap string) (answer *http.Response, closeConnection func(), err error) {
	upgrades := p.status == http.StatusSwitchingProtocols
	var body io.Reader
	if !upgrades {
		body = bytes.NewReader(p.request)
	}
	request, err := http.NewRequestWithContext(ctx, p.method, "http://"+tap+p.target, body)
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(request.Header, p.requestHeader)
	request.Header.Set(playHeader, p.name)
	request.Header.Set("Traceparent", fmt.Sprintf("00-%s-00f067aa0ba902b7-01", p.trace))
	if !upgrades {
		if answer, err = passThrough.RoundTrip(request); err != nil {
			return nil, nil, err
		}
		return answer, func() { _ = answer.Body.Close() }, nil
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", tap)
	if err != nil {
		return nil, nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = connection.SetDeadline(deadline)
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "websocket")
	if err = request.Write(connection); err != nil {
		return nil, nil, err
	}
	reader := bufio.NewReader(connection)
	if answer, err = http.ReadResponse(reader, request); err != nil {
		return nil, nil, err
	}
	if answer.StatusCode == http.StatusSwitchingProtocols {
		answer.Body = io.NopCloser(reader)
		_, err = connection.Write(p.request)
	}
	return answer, func() { _ = connection.Close() }, err
}

// requirePassed requires that both sides received what the other one sent.
func (p *play) requirePassed(t *testing.T) {
	t.Helper()
	if !p.breaks {
		require.NoError(t, p.err)
	}
	require.Equal(t, p.status, p.answered)
	require.True(t, bytes.Equal(p.body(), p.received), "the client received other bytes than the upstream sent")
	require.True(t, bytes.Equal(p.request, p.asked), "the upstream received another request than the client sent")
	for name, values := range p.requestHeader {
		require.Equal(t, values, p.sent[name], name)
	}
}

// byTrace returns spans by their trace.
func byTrace(t *testing.T, spans []ptrace.Span) map[pcommon.TraceID]ptrace.Span {
	t.Helper()
	all := map[pcommon.TraceID]ptrace.Span{}
	for _, span := range spans {
		require.NotContains(t, all, span.TraceID(), "two spans of one exchange")
		all[span.TraceID()] = span
	}
	return all
}

// traceOf returns a trace ID that no other number has.
func traceOf(n int) (id pcommon.TraceID) {
	copy(id[:], fmt.Sprintf("%016d", n+1))
	return id
}

func splitAt(body []byte, offsets ...int) (pieces [][]byte) {
	start := 0
	for _, end := range append(slices.Sorted(slices.Values(offsets)), len(body)) {
		if end > start {
			pieces = append(pieces, body[start:end])
			start = end
		}
	}
	return pieces
}
