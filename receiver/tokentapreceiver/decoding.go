// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// decoding reads a copy of an exchange, and sends its spans. The exchange calls its methods,
// and after an upgrade the goroutines that copy the connection. A timer ends it at
// max_stream_duration. The mutex of its guard guards what follows the guard: first what each chunk needs, side by
// side in memory.
type decoding struct {
	receiver *tokenTapReceiver
	route    *route
	trace    traceIdentity
	start    time.Time
	expiry   *time.Timer
	memory   llmstream.Account
	// forwards is when the read returned that is being forwarded, like call.start, or 0. It is kept for judged engines.
	forwards atomic.Int64

	guard
	backlog  backlog
	reader   answerReader
	upgraded *connection // set if the answer is a connection, which has calls of its own
	call     call        // of an answer that is no connection
	request  engineRequest
	asked    asked
	answered answered
	refusals int64 // of the memory that spans report
}

// answered is how the upstream answered, and how the exchange ended.
type answered struct {
	status      int // 0 without an answer
	contentType string
	expired     bool // it was ended by the timer
	forwarding       // zero before the end, and if the timer ended it
}

// begin begins the decoding of an exchange.
func (d *decoding) begin(x *exchange) {
	d.receiver, d.route, d.start = x.receiver, x.route, time.Now()
	d.trace, d.memory = newTraceIdentity(), x.receiver.memory.Account()
	d.asked = asked{request: x.request, path: sentPath(x.request.URL), copied: &x.copied}
	d.logger, d.format = x.receiver.logger, &d.asked.facts.Format
	d.guarded(func() {
		d.trace.join(x.request.Header)
		d.asked.readHead()
	})
	d.call = call{decoding: d, trace: d.trace, start: d.start.UnixNano()}
	d.asked.copied.memory = &d.memory
	d.expiry = time.AfterFunc(d.receiver.cfg.MaxStreamDuration, d.expire)
}

// now returns the Unix time in nanoseconds, on a clock that does not jump.
func (d *decoding) now() int64 { return d.start.UnixNano() + int64(time.Since(d.start)) }

// open opens the decoder of an answer. It is called with the mutex.
func (d *decoding) open(head llmstream.AnswerHead) {
	if d.asked.asks() && head.MayBeLLM() {
		d.stopped = !d.reader.open(head, d.limits(), d.call.Chunk)
	}
}

func (d *decoding) limits() llmstream.Limits {
	return llmstream.Limits{EventBytes: d.receiver.cfg.MaxEventBytes, Memory: &d.memory}
}

// readRequest inspects what has passed of the request's body. It is called with the mutex.
func (d *decoding) readRequest() {
	if d.asked.inspected {
		return
	}
	d.asked.inspected = true
	d.guarded(func() { d.asked.readBody(&d.memory) })
	// What found no room so far is counted as a truncated request.
	d.refusals = d.memory.Refusals()
	d.call.refusals = d.refusals
	if d.asked.truncated {
		d.receiver.telemetry.ReceiverTokenTapRequestsTruncated.Add(context.Background(), 1)
	}
}

// keep lets a read of the answer into the buffer p wait for others, or decodes all of them. It returns the part of p
// that may be read into now.
func (d *decoding) keep(read arrival, p []byte) (rest []byte) {
	rest = p
	if d.route.engine != nil {
		d.forwards.Store(0)
	}
	d.observe(func() {
		if len(read.bytes) > 0 {
			d.readRequest() // which releases its copy
			if d.stopped || !d.backlog.add(read, p, d.route.engine != nil) {
				d.decode()
				d.write(read)
			}
		}
		rest = p[:len(p)-d.backlog.bytes]
	})
	return rest
}

// decode decodes the reads that wait. It is called with the mutex.
func (d *decoding) decode() {
	for _, read := range d.backlog.take() {
		d.write(read)
	}
}

// write decodes what a read of the answer returned. It is called with the mutex.
func (d *decoding) write(read arrival) {
	d.readRequest()
	if len(read.bytes) == 0 || d.stopped {
		return
	}
	if d.upgraded != nil {
		d.upgraded.server.WriteServer(read.bytes, read.at)
	} else if !d.reader.write(read) {
		d.stopped = true
	}
}

// observe calls f with the mutex, unless there is no decoding, or it has ended.
func (d *decoding) observe(f func()) {
	if d != nil {
		d.guard.observe(f)
	}
}

// expire ends the observation of an exchange that takes too long, and gives way to another
// one. The exchange is forwarded to its end.
func (d *decoding) expire() {
	d.observe(func() {
		d.answered.expired = true
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
		d.answered.forwarding = forwarded
		d.end()
	})
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.request.end(liveness.Abandoned, liveness.Usage{}) // which the timer left open
}

// end sends the spans of the exchange, and releases its memory. It is called once, with the mutex.
func (d *decoding) end() {
	d.ended = true
	d.receiver.decodings.Delete(d)
	d.receiver.open.Add(-1)
	defer func() {
		d.call = call{}
		d.reader.release()
		d.memory.Close()
	}()
	d.guarded(d.decode)
	if d.upgraded != nil {
		d.upgraded.end(d.now())
	} else {
		d.endCall(d.now())
	}
	if d.answered.expired && d.request.open != nil { // what it gets from now on is not seen
		d.request.open.Unseen(engines.Now())
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
	d.guarded(func() { o = d.reader.end(end, d.answered.complete) })
	if !d.answered.expired {
		d.guarded(func() { d.endRequest(&o) })
	}
	request := false
	d.guarded(func() { request = d.isRequest(&o) })
	if request {
		d.guarded(func() { d.call.End(o, end) })
	} else {
		d.receiver.telemetry.ReceiverTokenTapExchangesUnrecognised.Add(context.Background(), 1)
		if d.asked.asks() && d.answered.status != 0 && o.Format == "" {
			d.receiver.untracked.name(d.asked.path, d.route.endpoint.Host, d.answered.contentType, d.answered.status)
		}
	}
}
