// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/llmstream"
)

// exchange observes a request and its answer as they are forwarded. Its methods are called
// by the handler's goroutine. After an upgrade, the connection's mutex guards them.
type exchange struct {
	receiver *tokenTapReceiver
	route    *route
	request  *http.Request
	path     string // as the client sent it
	copied   requestCopy
	start    time.Time
	trace    traceIdentity
	// observed is false beyond max_streams: the exchange is only forwarded.
	observed bool

	facts     llmstream.RequestFacts
	inspected bool // the facts have those of the request's body
	status    int  // 0 without an answer
	call      *call
	decoder   *llmstream.Decoder // nil if the answer is of no model call
	content   *contentDecoder    // nil without content encoding
	// upgraded is set while the answer is a connection, which has calls of its own.
	upgraded *connection

	readAt  int64  // Unix time in nanoseconds of the last read of the answer
	pending []byte // what it read, until it is decoded
	stopped bool   // nothing more is observed

	received       bool // the answer has a body
	complete       bool // the body was read to its end
	unknownContent bool // the content encoding is unknown or damaged
	upstreamError  error
	clientClosed   bool // before the upstream

	expiry  *time.Timer
	expired atomic.Bool // at max_stream_duration: nothing more is observed
}

// begin starts an exchange.
func (r *tokenTapReceiver) begin(route *route, req *http.Request) *exchange {
	x := &exchange{receiver: r, route: route, request: req, start: time.Now()}
	if req.Body != nil && req.Body != http.NoBody {
		x.copied.ReadCloser = req.Body
		req.Body = &x.copied
	}
	if r.open.Add(1) > int64(r.cfg.MaxStreams) {
		r.open.Add(-1)
		r.telemetry.ReceiverTokenTapExchangesUnobserved.Add(context.Background(), 1)
		return x
	}
	x.observed = true
	x.expiry = time.AfterFunc(r.cfg.MaxStreamDuration, x.expire)
	x.path = sentPath(req.URL)
	x.guard(func() { x.facts = llmstream.RequestOf(x.path, req.URL.RawQuery, nil) })
	x.trace = newTraceIdentity(req.Header)
	x.call = &call{exchange: x, trace: x.trace, start: x.start.UnixNano()}
	x.copied.total = &r.copied
	return x
}

// now returns the Unix time in nanoseconds, on a clock that does not jump.
func (x *exchange) now() int64 { return x.start.UnixNano() + int64(time.Since(x.start)) }

var errUpgrade = errors.New("the answer upgrades the connection to a protocol that the request did not ask for")

// answer begins to observe the answer.
func (x *exchange) answer(res *http.Response) error {
	if res.StatusCode == http.StatusSwitchingProtocols && !strings.EqualFold(res.Header.Get("Upgrade"), x.request.Header.Get("Upgrade")) {
		return errUpgrade // httputil.ReverseProxy would not close the connection
	}
	if !x.observed {
		return nil
	}
	x.status = res.StatusCode
	facts := llmstream.Exchange{
		Path: x.path, RawQuery: x.request.URL.RawQuery,
		Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), Header: res.Header,
	}
	limits := llmstream.Limits{EventBytes: x.receiver.cfg.MaxEventBytes}
	if body, ok := res.Body.(io.ReadWriteCloser); ok && res.StatusCode == http.StatusSwitchingProtocols {
		x.readRequest()
		x.upgraded = newConnection(x, body, facts, limits)
		res.Body = x.upgraded
		return nil
	}
	if x.asks() {
		x.decoder = llmstream.NewDecoder(facts, limits, x.call.Chunk)
		encodings, ok := encodingsOf(res.Header)
		x.stopped, x.unknownContent = !ok, !ok
		if len(encodings) > 0 {
			x.content = newContentDecoder(encodings, func(p []byte) { x.decoder.Write(p, x.readAt) })
		}
	}
	res.Body = &answerBody{res.Body, x}
	return nil
}

// asks reports whether the request may be one for a model call. Others list models or fetch
// files.
func (x *exchange) asks() bool {
	return x.request.Method == http.MethodPost || x.facts.Replayed || x.request.Header.Get("Upgrade") != ""
}

// readRequest inspects what has passed of the request's body.
func (x *exchange) readRequest() {
	if x.inspected {
		return
	}
	x.inspected = true
	copied, truncated := x.copied.take()
	x.guard(func() {
		body, decoded := decodeRequest(x.request.Header, copied)
		truncated = truncated || !decoded
		x.facts = llmstream.RequestOf(x.path, x.request.URL.RawQuery, body)
	})
	if truncated {
		x.receiver.telemetry.ReceiverTokenTapRequestsTruncated.Add(context.Background(), 1)
	}
}

// sent is called when bytes of the answer were written, but perhaps not sent yet.
func (x *exchange) sent(p []byte, err error) {
	x.pending = p
	if err != nil {
		x.clientClosed = true
		x.decode()
	}
}

// flushed is called when the written bytes were sent, or the header alone.
func (x *exchange) flushed(err error) {
	x.clientClosed = x.clientClosed || err != nil
	if x.observed {
		x.readRequest()
	}
	x.decode()
}

// decode decodes what the last read returned.
func (x *exchange) decode() {
	p := x.pending
	x.pending = nil
	if len(p) == 0 || x.stopped || x.decoder == nil || x.expired.Load() {
		return
	}
	x.guard(func() {
		if x.content == nil {
			x.decoder.Write(p, x.readAt)
		} else if x.content.write(p); x.content.err != nil {
			x.stopped, x.unknownContent = true, true
		}
	})
}

// expire stops the observation of an exchange that takes too long, and gives way to
// another one. A timer calls it.
func (x *exchange) expire() {
	x.expired.Store(true)
	x.receiver.open.Add(-1)
	x.receiver.telemetry.ReceiverTokenTapStreamsExpired.Add(context.Background(), 1)
}

// guard stops the observation if f panics: forwarding goes on.
func (x *exchange) guard(f func()) {
	defer func() {
		if recover() != nil { // the value is not logged: it may hold text of the exchange
			x.stopped = true
			x.receiver.logger.Error("Failed to decode an exchange; it is forwarded", zap.String("format", string(x.facts.Format)), zap.Stack("stack"))
		}
	}()
	f()
}

// finish sends the spans of the exchange.
func (x *exchange) finish() {
	if !x.observed {
		return
	}
	if x.expiry.Stop() {
		x.receiver.open.Add(-1)
	}
	if x.upgraded != nil {
		x.upgraded.finish()
		return
	}
	end := x.now()
	x.readRequest()
	var o llmstream.Observation
	x.guard(func() {
		if x.content != nil {
			damaged := x.content.end() != nil
			x.unknownContent = x.unknownContent || damaged && x.complete
		}
		if x.decoder != nil {
			x.decoder.End(end)
			o = x.decoder.Observation()
		}
	})
	if x.recognised(&o) {
		x.call.End(o, end)
	} else {
		x.receiver.telemetry.ReceiverTokenTapExchangesUnrecognised.Add(context.Background(), 1)
	}
}

// recognised reports whether the answer is an LLM's, or belongs to a request to one.
func (x *exchange) recognised(o *llmstream.Observation) bool {
	return o.Format != "" || x.facts.Format != "" && x.asks()
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
		x.readAt, x.received = x.now(), true
	}
	switch err {
	case nil:
	case io.EOF:
		x.complete = true
	default:
		x.upstreamError = err
	}
	return n, err
}
