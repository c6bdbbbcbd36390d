// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// exchange is a request and its answer as they are forwarded. The goroutine of the handler
// calls its methods, and passes what was forwarded on to the decoding.
type exchange struct {
	receiver *tokenTapReceiver
	route    *route
	request  *http.Request
	copied   requestCopy
	// connection to the upstream on which the body is sent, or nil.
	connection *upstreamConn
	// decoding is nil beyond max_streams: the exchange is only forwarded.
	decoding *decoding
	// unseen is the request of an exchange without a decoding.
	unseen  engineRequest
	pending arrival
	forwarding

	// The rest is allocated with the exchange, so that a chunk finds what it needs in fewer places of the memory.
	body     answerBody
	writer   answerWriter
	observed decoding
}

// forwarding is how far an exchange was forwarded.
type forwarding struct {
	received      bool // the answer has a body
	complete      bool // the body was read to its end
	upstreamError error
	clientClosed  bool // before the upstream
}

// begin starts an exchange.
func (r *tokenTapReceiver) begin(route *route, req *http.Request) *exchange {
	x := &exchange{receiver: r, route: route, request: req}
	if req.ContentLength != 0 { // confighttp wraps the body of a request without one, too
		x.copied.ReadCloser = req.Body
		req.Body = &x.copied
	}
	if r.open.Add(1) > int64(r.cfg.MaxStreams) {
		r.open.Add(-1)
		r.telemetry.ReceiverTokenTapExchangesUnobserved.Add(context.Background(), 1)
		x.beginUnseen()
		return x
	}
	x.decoding = &x.observed
	x.decoding.begin(x)
	r.decodings.Store(x.decoding, nil)
	return x
}

var errForeignUpgrade = errors.New("the upstream switched to a protocol that the request does not ask for; check its endpoint")

// answer begins to observe the answer. It returns an error for one that cannot be forwarded, such as an
// unexpected upgrade: httputil.ReverseProxy finds it later, and would leave the connection open.
func (x *exchange) answer(res *http.Response) error {
	if res.StatusCode < 100 || res.StatusCode > 999 {
		return errMalformed // the server cannot send such a status
	}
	body, upgraded := res.Body.(io.ReadWriteCloser)
	if res.StatusCode != http.StatusSwitchingProtocols {
		upgraded = false
	} else if !upgraded || !isWebSocket(res.Header) || !isWebSocket(res.Request.Header) {
		return errForeignUpgrade
	}
	d := x.decoding
	d.observe(func() {
		d.answered.status, d.answered.contentType = res.StatusCode, res.Header.Get("Content-Type")
		d.beginRequest()
		head := llmstream.AnswerHead{
			Path: d.asked.path, RawQuery: x.request.URL.RawQuery, Asked: &d.asked.facts,
			Status: res.StatusCode, ContentType: d.answered.contentType, Header: res.Header,
		}
		if upgraded {
			d.readRequest()
			d.upgraded = newConnection(d, body, head)
			res.Body = d.upgraded
			return
		}
		x.body = answerBody{ReadCloser: res.Body, exchange: x}
		res.Body = &x.body
		d.open(head)
	})
	return nil
}

// Get implements httputil.BufferPool.
func (x *exchange) Get() []byte { return buffers.Get() }

// Put implements httputil.BufferPool. It decodes what the buffer holds: the answer has been forwarded as far as it goes.
func (x *exchange) Put(buffer []byte) {
	x.decode()
	buffers.Put(buffer)
}

// decode decodes what has been read.
func (x *exchange) decode() {
	last := x.pending
	x.pending = arrival{}
	x.decoding.observe(func() {
		x.decoding.decode()
		x.decoding.write(last)
	})
}

// finish is called when the exchange was forwarded.
func (x *exchange) finish() {
	x.copied.release()
	x.connection.stop(&x.copied)
	if x.decoding != nil {
		x.decoding.finish(x.forwarding)
	}
	x.unseen.end(liveness.Abandoned, liveness.Usage{})
}

// answerBody notes when the reads of an answer return. What a read returned is decoded when a later one begins, so
// after it was sent: bytes that arrive meanwhile wait in the socket. An upstream that sends faster than its answer is
// decoded is slowed down to that.
type answerBody struct {
	io.ReadCloser
	exchange *exchange
}

// Read implements io.Reader. Until all was decoded, the caller must not change p, and pass the same one.
func (b *answerBody) Read(p []byte) (int, error) {
	x := b.exchange
	rest := x.decoding.keep(x.pending, p)
	n, err := b.ReadCloser.Read(rest)
	x.pending = arrival{rest[:n], x.decoding.now()}
	if x.route.engine != nil {
		x.decoding.forwards.Store(x.pending.at)
	}
	x.received = x.received || n > 0
	switch err {
	case nil:
	case io.EOF:
		x.complete = true
	default:
		x.upstreamError = err
	}
	return n, err
}
