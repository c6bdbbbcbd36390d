// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/llmstream"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// exchange observes a request and its answer as they are forwarded. Its methods are called
// by the handler's goroutine, apart from those of upgradedBody and requestCopy.
type exchange struct {
	receiver *tokenTapReceiver
	route    *route
	request  *http.Request
	path     string // escaped
	copied   requestCopy
	start    time.Time
	trace    traceIdentity
	// observed is false beyond max_streams: the exchange is only forwarded.
	observed bool

	facts   llmstream.RequestFacts
	status  int // 0 without an answer
	decoder *llmstream.Decoder
	content *contentDecoder
	// upgraded is set while the answer is a connection.
	upgraded *upgradedBody
	line     timeline.Timeline
	dropped  int64 // chunks beyond max_chunks_per_stream

	readAt  int64  // Unix time in nanoseconds of the last read of the answer
	pending []byte // what it read, until it is decoded
	stopped bool   // nothing more is observed

	expired        bool // stopped by max_stream_duration
	unknownContent bool // the content encoding is unknown or damaged
	complete       bool // the body of the answer was read to its end
	upstreamError  error
	clientError    error
}

// begin starts an exchange.
func (r *tokenTapReceiver) begin(route *route, req *http.Request) *exchange {
	x := &exchange{receiver: r, route: route, request: req, start: time.Now()}
	if r.open.Add(1) > int64(r.cfg.MaxStreams) {
		r.open.Add(-1)
		r.telemetry.ReceiverTokenTapExchangesUnobserved.Add(req.Context(), 1)
		return x
	}
	x.observed = true
	x.path = req.URL.EscapedPath()
	x.trace = newTraceIdentity(req.Header)
	if req.Body != nil && req.Body != http.NoBody {
		x.copied.ReadCloser = req.Body
		req.Body = &x.copied
	}
	return x
}

// now returns the Unix time in nanoseconds, on a clock that does not jump.
func (x *exchange) now() int64 { return x.start.UnixNano() + int64(time.Since(x.start)) }

// answer begins to observe the answer. It never returns an error.
func (x *exchange) answer(res *http.Response) error {
	if !x.observed {
		return nil
	}
	x.status = res.StatusCode
	x.readRequest()
	x.decoder = llmstream.NewDecoder(llmstream.Exchange{
		Path: x.path, RawQuery: x.request.URL.RawQuery,
		Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), Header: res.Header,
	}, llmstream.Limits{EventBytes: x.receiver.cfg.MaxEventBytes}, x.chunk)
	if connection, ok := res.Body.(io.ReadWriteCloser); ok && res.StatusCode == http.StatusSwitchingProtocols {
		x.upgraded = &upgradedBody{ReadWriteCloser: connection, exchange: x}
		res.Body = x.upgraded
		return nil
	}
	content, ok := newContentDecoder(res.Header.Get("Content-Encoding"), func(p []byte) { x.decoder.Write(p, x.readAt) })
	x.content = content
	x.stopped, x.unknownContent = !ok, !ok
	res.Body = &answerBody{res.Body, x}
	return nil
}

// readRequest inspects what has passed of the request.
func (x *exchange) readRequest() {
	body, truncated := x.copied.take()
	if truncated {
		x.receiver.telemetry.ReceiverTokenTapRequestsTruncated.Add(context.Background(), 1)
	}
	x.guard(func() { x.facts = llmstream.RequestOf(x.path, x.request.URL.RawQuery, body) })
}

// chunk records a chunk that carries tokens.
func (x *exchange) chunk(c llmstream.Chunk) {
	if x.line.Len() >= x.receiver.cfg.MaxChunksPerStream {
		x.dropped++
		return
	}
	x.line.Append(c.Time, uint32(min(max(c.Tokens, 1), timeline.MaxTokensPerChunk)), channelOf(c.Channels))
}

// channelOf returns the channel of a chunk in a timeline. Of several, the one counts that
// the user waits for.
func channelOf(c llmstream.Channels) timeline.Channel {
	switch {
	case c&(llmstream.Content|llmstream.Refusal) != 0:
		return timeline.Content
	case c&llmstream.ToolCall != 0:
		return timeline.ToolCall
	default:
		return timeline.Reasoning
	}
}

// sent is called when bytes of the answer were written, but perhaps not sent yet.
func (x *exchange) sent(p []byte, err error) {
	x.pending = p
	if err != nil {
		x.clientError = err
		x.decode()
	}
}

// flushed is called when the written bytes were sent.
func (x *exchange) flushed(err error) {
	if err != nil && x.clientError == nil {
		x.clientError = err
	}
	x.decode()
}

// decode decodes what the last read returned.
func (x *exchange) decode() {
	p := x.pending
	x.pending = nil
	if len(p) == 0 || x.stopped || x.decoder == nil {
		return
	}
	if x.readAt-x.start.UnixNano() > int64(x.receiver.cfg.MaxStreamDuration) {
		x.stopped, x.expired = true, true
		x.receiver.telemetry.ReceiverTokenTapStreamsExpired.Add(context.Background(), 1)
		return
	}
	x.guard(func() {
		if x.content == nil {
			x.decoder.Write(p, x.readAt)
		} else if x.content.write(p); x.content.failed() {
			x.stopped, x.unknownContent = true, true
		}
	})
}

// guard stops the observation if f panics: forwarding goes on.
func (x *exchange) guard(f func()) {
	defer func() {
		if recovered := recover(); recovered != nil {
			x.stopped = true
			// The value is not logged: it may hold text of the exchange.
			x.receiver.upstreamLog.Error("Failed to decode an answer", zap.String("format", string(x.facts.Format)), zap.Stack("stack"))
		}
	}()
	f()
}

// finish sends the span of the exchange.
func (x *exchange) finish() {
	if !x.observed {
		return
	}
	x.receiver.open.Add(-1)
	if x.upgraded != nil {
		x.upgraded.mutex.Lock()
		defer x.upgraded.mutex.Unlock()
	}
	x.decode()
	end := x.now()
	if x.decoder == nil {
		x.readRequest()
	} else {
		x.guard(func() {
			if x.content != nil {
				x.unknownContent = x.content.end() != nil && x.complete || x.unknownContent
			}
			x.decoder.End(end)
		})
	}
	x.stopped = true
	x.report(end)
}

// answerBody notes when the reads of an answer return.
type answerBody struct {
	io.ReadCloser
	exchange *exchange
}

// Read implements io.Reader.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	x := b.exchange
	if n > 0 {
		x.readAt = x.now()
	}
	if err == io.EOF {
		x.complete = true
	} else if err != nil {
		x.upstreamError = err
	}
	return n, err
}

// upgradedBody is the connection to the upstream after an upgrade. Each direction is copied
// by a goroutine of its own.
type upgradedBody struct {
	io.ReadWriteCloser
	exchange *exchange
	mutex    sync.Mutex // guards the exchange
}

// Read implements io.Reader.
func (b *upgradedBody) Read(p []byte) (int, error) {
	n, err := b.ReadWriteCloser.Read(p)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	x := b.exchange
	x.readAt, x.pending = x.now(), p[:n]
	x.decode()
	x.complete = x.complete || err == io.EOF
	return n, err
}
