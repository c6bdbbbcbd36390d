// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// exchange observes a request and its answer as they are forwarded. The handler's goroutine
// calls its methods, and after an upgrade those that copy the connection. A timer ends the
// observation at max_stream_duration.
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
	memory   *llmstream.Account // nil if not observed
	expiry   *time.Timer

	// mutex guards what is decoded. Only the timer, and the end of a connection, contend for it.
	mutex     sync.Mutex
	facts     llmstream.RequestFacts
	inspected bool // the facts have those of the request's body
	status    int  // 0 without an answer
	call      *call
	decoder   *llmstream.Decoder // nil if the answer is of no model call
	content   *contentDecoder    // nil without content encoding
	// upgraded is set if the answer is a connection, which has calls of its own.
	upgraded       *connection
	decodedAt      int64 // readAt of what is being decoded
	stopped        bool  // nothing more is decoded
	ended          bool  // its spans are sent, and its memory is released
	refusals       int64 // of the memory that spans report
	expired        bool  // it was ended by the timer
	unknownContent bool  // the content encoding is unknown or damaged
	panicked       atomic.Bool

	// The following belong to the handler. After an upgrade, the mutex guards them, too.
	readAt        int64  // Unix time in nanoseconds of the last read of the answer
	pending       []byte // what it read, until it is decoded
	received      bool   // the answer has a body
	complete      bool   // the body was read to its end
	upstreamError error
	clientClosed  bool // before the upstream
}

// begin starts an exchange.
func (r *tokenTapReceiver) begin(route *route, req *http.Request) *exchange {
	x := &exchange{receiver: r, route: route, request: req, start: time.Now()}
	if req.ContentLength != 0 { // confighttp wraps the body of a request without one, too
		x.copied.ReadCloser = req.Body
		req.Body = &x.copied
	}
	if r.open.Add(1) > int64(r.cfg.MaxStreams) {
		r.open.Add(-1)
		r.telemetry.ReceiverTokenTapExchangesUnobserved.Add(context.Background(), 1)
		return x
	}
	x.observed = true
	x.path = sentPath(req.URL)
	x.trace = newTraceIdentity(nil)
	x.guard(func() {
		x.trace = newTraceIdentity(req.Header)
		x.facts = llmstream.RequestOf(x.path, req.URL.RawQuery, nil)
	})
	x.call = &call{exchange: x, trace: x.trace, start: x.start.UnixNano()}
	x.memory = r.memory.NewAccount()
	x.copied.memory = x.memory
	x.expiry = time.AfterFunc(r.cfg.MaxStreamDuration, x.expire)
	return x
}

// now returns the Unix time in nanoseconds, on a clock that does not jump.
func (x *exchange) now() int64 { return x.start.UnixNano() + int64(time.Since(x.start)) }

var errForeignUpgrade = errors.New("the upstream switched to a protocol that the request does not ask for; check its endpoint")

// answer begins to observe the answer. It returns an error for an upgrade that cannot be
// forwarded: httputil.ReverseProxy finds it later, and would leave the connection open.
func (x *exchange) answer(res *http.Response) error {
	body, upgraded := res.Body.(io.ReadWriteCloser)
	if res.StatusCode != http.StatusSwitchingProtocols {
		upgraded = false
	} else if !upgraded || !isWebSocket(res.Header) || !isWebSocket(res.Request.Header) {
		return errForeignUpgrade
	}
	x.observe(func() {
		x.status = res.StatusCode
		facts := llmstream.AnswerHead{
			Path: x.path, RawQuery: x.request.URL.RawQuery,
			Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), Header: res.Header,
		}
		if upgraded {
			x.readRequest()
			x.upgraded = newConnection(x, body, facts, x.limits())
			res.Body = x.upgraded
			return
		}
		res.Body = &answerBody{res.Body, x}
		if x.asks() {
			x.decoder = llmstream.NewDecoder(facts, x.limits(), x.call.Chunk)
			encodings, ok := encodingsOf(res.Header)
			x.stopped, x.unknownContent = !ok, !ok
			if len(encodings) > 0 {
				x.content = newContentDecoder(encodings, x.memory, func(p []byte) { x.decoder.Write(p, x.decodedAt) })
			}
		}
	})
	return nil
}

func (x *exchange) limits() llmstream.Limits {
	return llmstream.Limits{EventBytes: x.receiver.cfg.MaxEventBytes, Memory: x.memory}
}

// asks reports whether the request may be one for a model call. Others list models or fetch
// files.
func (x *exchange) asks() bool {
	return x.request.Method == http.MethodPost || x.facts.Replayed || x.request.Header.Get("Upgrade") != ""
}

// readRequest inspects what has passed of the request's body. It is called with the mutex.
func (x *exchange) readRequest() {
	if x.inspected {
		return
	}
	x.inspected = true
	copied, truncated := x.copied.take()
	x.guard(func() {
		body, decoded := decodeRequest(x.request.Header, copied, x.memory)
		truncated = truncated || !decoded
		x.facts = llmstream.RequestOf(x.path, x.request.URL.RawQuery, body)
	})
	// What found no room so far is counted as a truncated request.
	x.refusals = x.memory.Refusals()
	if x.call != nil {
		x.call.refusals = x.refusals
	}
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

// flushed is called when the written bytes were sent, or the header alone. A timer of
// httputil.ReverseProxy flushes the header, never at the same time as a write.
func (x *exchange) flushed(err error) {
	x.clientClosed = x.clientClosed || err != nil
	x.decode()
}

// decode decodes what the last read returned.
func (x *exchange) decode() {
	x.observe(func() {
		p := x.pending
		x.pending = nil
		x.readRequest()
		if len(p) == 0 || x.stopped {
			return
		}
		x.decodedAt = x.readAt
		switch {
		case x.upgraded != nil:
			x.upgraded.server.WriteServer(p, x.decodedAt)
		case x.decoder == nil:
		case x.content == nil:
			x.decoder.Write(p, x.decodedAt)
		default:
			if x.content.write(p); x.content.err != nil {
				x.stopped, x.unknownContent = true, !errors.Is(x.content.err, errNoMemory)
			}
		}
	})
}

// observe calls f with the mutex, unless the exchange has ended. If f panics, forwarding goes on.
func (x *exchange) observe(f func()) {
	if !x.observed {
		return
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if !x.ended {
		x.guard(f)
	}
}

// guard stops the decoding if f panics.
func (x *exchange) guard(f func()) {
	if !x.try(f) {
		x.stopped = true
	}
}

// try calls f, and reports whether it returned instead of panicking.
func (x *exchange) try(f func()) (ok bool) {
	defer func() {
		if recover() != nil { // the value is not logged: it may hold text of the exchange
			x.panicked.Store(true)
			x.receiver.logger.Error("failed to decode an exchange, which is forwarded all the same; report this bug with the stack", zap.String("format", string(x.facts.Format)), zap.Stack("stack"))
		}
	}()
	f()
	return true
}

// expire ends the observation of an exchange that takes too long, and gives way to another
// one. The exchange is forwarded to its end.
func (x *exchange) expire() {
	x.observe(func() {
		x.expired = true
		x.receiver.telemetry.ReceiverTokenTapStreamsExpired.Add(context.Background(), 1)
		x.end()
	})
}

// finish is called when the exchange was forwarded.
func (x *exchange) finish() {
	if !x.observed {
		return
	}
	x.expiry.Stop()
	if x.upgraded != nil {
		x.decode()
	}
	x.observe(x.end)
}

// end sends the spans of the exchange, and releases its memory. It is called once, with the mutex.
func (x *exchange) end() {
	x.ended = true
	x.receiver.open.Add(-1)
	defer func() {
		x.call, x.decoder, x.content = nil, nil, nil
		x.memory.Close()
	}()
	if x.upgraded != nil {
		x.upgraded.end(x.now())
	} else {
		x.endCall(x.now())
	}
	if x.memory.Refusals() > x.refusals { // none of the spans says so
		x.count([]string{partMemory})
	}
	if x.panicked.Load() {
		x.count([]string{partPanic})
	}
}

func (x *exchange) endCall(end int64) {
	x.readRequest()
	var o llmstream.Observation
	x.guard(func() {
		if x.content != nil {
			err := x.content.end()
			damaged := err != nil && !errors.Is(err, errNoMemory)
			x.unknownContent = x.unknownContent || damaged && !x.expired && x.complete
		}
		if x.decoder != nil {
			x.decoder.End(end)
			o = x.decoder.Observation()
		}
	})
	if x.recognised(&o) {
		x.guard(func() { x.call.End(o, end) })
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
