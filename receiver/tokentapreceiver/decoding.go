// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// decoding reads a copy of an exchange, and sends its spans. The exchange calls its methods,
// and after an upgrade the goroutines that copy the connection. A timer ends it at
// max_stream_duration.
type decoding struct {
	receiver *tokenTapReceiver
	route    *route
	request  *http.Request
	path     string // as the client sent it
	copied   *requestCopy
	trace    traceIdentity
	expiry   *time.Timer
	panicked atomic.Bool
	start    time.Time
	memory   llmstream.Account

	// mutex guards the following: first what each chunk needs, side by side in memory. Only the timer, and the
	// end of a connection, contend for it.
	mutex     sync.Mutex
	ended     bool               // its spans are sent, and its memory is released
	stopped   bool               // nothing more is decoded
	inspected bool               // the facts have those of the request's body
	truncated bool               // of which only the beginning is known
	decodedAt int64              // when what is being decoded was read
	upgraded  *connection        // set if the answer is a connection, which has calls of its own
	decoder   *llmstream.Decoder // nil if the answer is of no model call
	content   *contentDecoder    // nil without content encoding
	call      call               // of an answer that is no connection

	facts          llmstream.RequestFacts
	status         int        // 0 without an answer
	contentType    string     // of the answer
	refusals       int64      // of the memory that spans report
	expired        bool       // it was ended by the timer
	unknownContent bool       // the content encoding is unknown or damaged
	forwarded      forwarding // zero before the end, and if the timer ended it
}

// begin begins the decoding of an exchange.
func (d *decoding) begin(x *exchange) {
	d.receiver, d.route, d.request, d.path, d.copied = x.receiver, x.route, x.request, sentPath(x.request.URL), &x.copied
	d.start, d.trace, d.memory = time.Now(), newTraceIdentity(nil), x.receiver.memory.Account()
	d.guard(func() {
		d.trace = newTraceIdentity(d.request.Header)
		d.facts = llmstream.RequestOf(d.path, d.request.URL.RawQuery, nil)
	})
	d.call = call{decoding: d, trace: d.trace, start: d.start.UnixNano()}
	d.copied.memory = &d.memory
	d.expiry = time.AfterFunc(d.receiver.cfg.MaxStreamDuration, d.expire)
}

// now returns the Unix time in nanoseconds, on a clock that does not jump.
func (d *decoding) now() int64 { return d.start.UnixNano() + int64(time.Since(d.start)) }

// open opens the decoder of an answer. It is called with the mutex.
func (d *decoding) open(head llmstream.AnswerHead) {
	if !d.asks() || !head.MayBeLLM() {
		return
	}
	d.decoder = llmstream.NewDecoder(head, d.limits(), d.call.Chunk)
	encodings, ok := encodingsOf(head.Header)
	d.stopped, d.unknownContent = !ok, !ok
	if len(encodings) > 0 {
		d.content = newContentDecoder(encodings, &d.memory, func(p []byte) { d.decoder.Write(p, d.decodedAt) })
	}
}

func (d *decoding) limits() llmstream.Limits {
	return llmstream.Limits{EventBytes: d.receiver.cfg.MaxEventBytes, Memory: &d.memory}
}

// readRequest inspects what has passed of the request's body. It is called with the mutex.
func (d *decoding) readRequest() {
	if d.inspected {
		return
	}
	d.inspected = true
	copied, truncated := d.copied.take()
	d.guard(func() {
		body, decoded := decodeRequest(d.request.Header, copied, &d.memory)
		truncated = truncated || !decoded
		d.facts = llmstream.RequestOf(d.path, d.request.URL.RawQuery, body)
	})
	d.truncated = truncated
	// What found no room so far is counted as a truncated request.
	d.refusals = d.memory.Refusals()
	d.call.refusals = d.refusals
	if truncated {
		d.receiver.telemetry.ReceiverTokenTapRequestsTruncated.Add(context.Background(), 1)
	}
}

// write decodes what a read of the answer returned. It is called with the mutex.
func (d *decoding) write(read arrival) {
	d.readRequest()
	if len(read.bytes) == 0 || d.stopped {
		return
	}
	d.decodedAt = read.at
	switch {
	case d.upgraded != nil:
		d.upgraded.server.WriteServer(read.bytes, read.at)
	case d.decoder == nil:
	case d.content == nil:
		d.decoder.Write(read.bytes, read.at)
	default:
		if d.content.write(read.bytes); d.content.err != nil {
			d.stopped, d.unknownContent = true, !errors.Is(d.content.err, errNoMemory)
		}
	}
	if d.decoder != nil && d.decoder.GaveUp() {
		d.stopped = true
		if d.content != nil {
			d.content.stop()
			d.content = nil
		}
	}
}

// observe calls f with the mutex, unless the decoding has ended. If f panics, forwarding goes on.
func (d *decoding) observe(f func()) {
	if d == nil {
		return
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !d.ended {
		d.guard(f)
	}
}

// guard stops the decoding if f panics.
func (d *decoding) guard(f func()) {
	if !d.try(f) {
		d.stopped = true
	}
}

// try calls f, and reports whether it returned instead of panicking.
func (d *decoding) try(f func()) (ok bool) {
	defer func() {
		if recover() != nil { // the value is not logged: it may hold text of the exchange
			d.panicked.Store(true)
			d.receiver.logger.Error("failed to decode an exchange, which is forwarded all the same; report this bug with the stack", zap.String("format", string(d.facts.Format)), zap.Stack("stack"))
		}
	}()
	f()
	return true
}

// expire ends the observation of an exchange that takes too long, and gives way to another
// one. The exchange is forwarded to its end.
func (d *decoding) expire() {
	d.observe(func() {
		d.expired = true
		d.receiver.telemetry.ReceiverTokenTapStreamsExpired.Add(context.Background(), 1)
		d.end()
	})
}

// finish ends the decoding of an exchange that was forwarded.
func (d *decoding) finish(forwarded forwarding) {
	d.expiry.Stop()
	d.observe(func() {
		if d.upgraded != nil {
			d.upgraded.decode()
		}
	})
	d.observe(func() {
		d.forwarded = forwarded
		d.end()
	})
}

// end sends the spans of the exchange, and releases its memory. It is called once, with the mutex.
func (d *decoding) end() {
	d.ended = true
	d.receiver.decodings.Delete(d)
	d.receiver.open.Add(-1)
	defer func() {
		d.call, d.decoder, d.content = call{}, nil, nil
		d.memory.Close()
	}()
	if d.upgraded != nil {
		d.upgraded.end(d.now())
	} else {
		d.endCall(d.now())
	}
	if d.memory.Refusals() > d.refusals { // none of the spans says so
		d.count([]string{partMemory})
	}
	if d.panicked.Load() {
		d.count([]string{partPanic})
	}
}

func (d *decoding) endCall(end int64) {
	d.readRequest()
	var o llmstream.Observation
	d.guard(func() {
		if d.content != nil {
			err := d.content.end()
			damaged := err != nil && !errors.Is(err, errNoMemory)
			d.unknownContent = d.unknownContent || damaged && d.forwarded.complete
		}
		if d.decoder != nil {
			d.decoder.End(end)
			o = d.decoder.Observation()
		}
	})
	request := false
	d.guard(func() { request = d.isRequest(&o) })
	if request {
		d.guard(func() { d.call.End(o, end) })
	} else {
		d.receiver.telemetry.ReceiverTokenTapExchangesUnrecognised.Add(context.Background(), 1)
		if d.asks() && d.status != 0 && o.Format == "" {
			d.receiver.untracked.name(d.path, d.route.endpoint.Host, d.contentType, d.status)
		}
	}
}
