// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

// handle forwards one exchange and observes it.
func (r *tokenTapReceiver) handle(w http.ResponseWriter, req *http.Request) {
	r.handling.RLock()
	defer r.handling.RUnlock()
	if r.closing.Load() { // the server read this request as it was closed
		panic(http.ErrAbortHandler)
	}
	if route, refused := r.routeOf(req); refused != nil {
		r.refuse(w, req, refused)
	} else {
		r.forward(w, req, route)
	}
}

// routeOf returns the route of a request, or why it is not forwarded.
func (r *tokenTapReceiver) routeOf(req *http.Request) (*route, *refusal) {
	if refused := refusalOf(req); refused != nil {
		return nil, refused
	}
	route := r.routes.find(sentPath(req.URL))
	if route == nil {
		return nil, &refusal{"no_route", http.StatusNotFound, "no upstream for this path; configure upstream, or a route with its prefix"}
	}
	if route.credentials { // a foreign web page could spend them; what other browsers may do, the upstream decides
		if message := r.browsers.Refusal(req); message != "" {
			return nil, &refusal{"foreign_page", http.StatusForbidden, message}
		}
	}
	return route, nil
}

func (r *tokenTapReceiver) forward(w http.ResponseWriter, req *http.Request, to *route) {
	dropForeignUpgrade(req.Header)
	if httpguard.Limited(req) {
		r.bodies.Lift(w)
	}
	// By default, an HTTP/1.1 server reads the whole request before it sends the answer. Full
	// duplex lets the answer begin earlier. HTTP/2 always works like this, and returns an error.
	_ = http.NewResponseController(w).EnableFullDuplex()
	x := r.begin(to, req)
	x.copied.bodies, x.copied.server = r.bodies, w
	defer x.finish()
	x.writer = answerWriter{w, x}
	x.proxy().ServeHTTP(&x.writer, req)
	if ended, _ := x.copied.state(); !ended {
		r.bodies.Abandon(req)
	}
}

func (x *exchange) proxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:      x,
		FlushInterval:  -1, // after every read
		BufferPool:     x,
		ErrorLog:       silent, // the exchange reports errors
		Rewrite:        x.rewrite,
		ModifyResponse: x.answer,
		ErrorHandler:   x.failed,
	}
}

var silent = log.New(io.Discard, "", 0)

// refusal is a request that is not forwarded.
type refusal struct {
	reason  string
	status  int
	message string
}

// refusalOf returns why a request cannot be forwarded, or nil.
func refusalOf(req *http.Request) *refusal {
	switch {
	case req.Method == http.MethodConnect:
		return &refusal{"connect", http.StatusMethodNotAllowed, "CONNECT is not supported: this is a reverse proxy"}
	case req.URL.Host != "" || req.URL.Scheme != "":
		return &refusal{"absolute_form", http.StatusBadRequest, "the request target must be a path: this is a reverse proxy"}
	case !strings.HasPrefix(req.URL.Path, "/"):
		return &refusal{"malformed_path", http.StatusBadRequest, "the request target must be a path that begins with a slash"}
	case strings.ContainsAny(req.RequestURI, " #"):
		// HTTP/2 allows both. In HTTP/1.1, a space ends the request target. Some servers end the path at
		// a #, so that "..#" is a dot segment.
		return &refusal{"malformed_path", http.StatusBadRequest, "the request target must not have spaces or #"}
	case slices.ContainsFunc(strings.FieldsFunc(req.URL.Path, isSlash), isDotSegment):
		// The upstream would resolve it, past the path of the configured endpoint.
		return &refusal{"malformed_path", http.StatusBadRequest, "the path must not have . or .. segments"}
	}
	return nil
}

// refusalOfBody returns how a request is answered whose body cannot be read on.
func refusalOfBody(err error) *refusal {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return &refusal{"request_too_large", http.StatusRequestEntityTooLarge, fmt.Sprintf("the body of the request exceeds max_request_body_size (%d bytes)", tooLarge.Limit)}
	}
	return &refusal{"malformed_body", http.StatusBadRequest, "the body of the request is not valid HTTP"}
}

func isSlash(c rune) bool { return c == '/' || c == '\\' }

// isDotSegment also recognises segments with parameters, such as "..;a=b": servers of
// servlets remove these before they resolve the path. Others decode the path before they
// end it at a # or ?, or end it at a null byte.
func isDotSegment(segment string) bool {
	if end := strings.IndexAny(segment, ";#?\x00"); end >= 0 {
		segment = segment[:end]
	}
	return segment == "." || segment == ".."
}

// refuse answers like the services do, in JSON.
func (r *tokenTapReceiver) refuse(w http.ResponseWriter, req *http.Request, refused *refusal) {
	r.telemetry.ReceiverTokenTapExchangesRejected.Add(req.Context(), 1, diagnostics.Label("reason", refused.reason))
	writeError(w, refused.status, refused.reason, refused.message)
}

func writeError(w http.ResponseWriter, status int, kind, message string) {
	body, _ := json.Marshal(map[string]any{"error": map[string]string{"type": kind, "message": "token_tap: " + message}}) // encodes always
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// dropForeignUpgrade removes an upgrade to another protocol than WebSocket. Over such a
// connection, requests could bypass the routes.
func dropForeignUpgrade(header http.Header) {
	if !isWebSocket(header) {
		header.Del("Upgrade")
	}
}

func isWebSocket(header http.Header) bool {
	return strings.EqualFold(header.Get("Upgrade"), "websocket")
}

// forwardedHeaders are removed by httputil.ReverseProxy, for use with proxies that add
// their own. This one adds none, so those of the client pass.
var forwardedHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// rewrite makes the request to the upstream.
func (x *exchange) rewrite(proxied *httputil.ProxyRequest) {
	out := proxied.Out
	out.Host = "" // that of the upstream
	out.URL.RawQuery = proxied.In.URL.RawQuery
	x.route.rewrite(out.URL)
	for _, name := range forwardedHeaders {
		if values := proxied.In.Header[name]; values != nil && !httpguts.HeaderValuesContainsToken(proxied.In.Header["Connection"], name) {
			out.Header[name] = values
		}
	}
	out.Trailer = proxied.In.Trailer // the server fills it once the body is read
	// If the upstream refuses a body that waits for 100 Continue, net/http sends it all the
	// same to use the connection again, and the client would be asked for it.
	out.Close = strings.EqualFold(out.Header.Get("Expect"), "100-continue")
	// An upgraded connection has a span for each response, none of which exists yet.
	if x.decoding != nil && x.receiver.cfg.Propagate && out.Header.Get("Upgrade") == "" {
		x.decoding.try(func() { x.decoding.trace.inject(out.Header) })
	}
}

var errMalformed = errors.New("the answer is not valid HTTP; check the scheme and port of the endpoint")

var errClosedEarly = errors.New("the upstream closed the connection before the request had arrived")

// failed answers a request that the upstream did not.
func (x *exchange) failed(w http.ResponseWriter, req *http.Request, err error) {
	overdue := x.copied.isOverdue()
	if overdue { // which net/http takes for the end of the connection
		err = errClosedEarly
	}
	x.upstreamError = err
	if req.Context().Err() != nil && !overdue {
		panic(http.ErrAbortHandler) // the client is gone, or the receiver stops
	}
	if _, broken := x.copied.state(); broken != nil {
		refused := refusalOfBody(broken)
		writeError(w, refused.status, refused.reason, refused.message)
		return
	}
	if errors.Is(err, errForeignUpgrade) {
		x.receiver.logger.Warn("refused an upgrade by an upstream", zap.String("upstream", x.route.endpoint.Host), zap.Error(err))
		writeError(w, http.StatusBadGateway, errorForeignUpgrade, err.Error())
		return
	}
	if strings.Contains(err.Error(), "malformed") { // net/http quotes the answer, which may be its text
		err = errMalformed
	}
	if x.decoding != nil && isDiscarded(x.request) && !overdue {
		_, _ = io.Copy(io.Discard, &x.copied) // so that the span names the model that fails; limited by sentBody
	}
	upstream := x.route.endpoint.Host
	x.receiver.doubts.Report(diagnostics.UpstreamUnreachable, diagnostics.Facts{Cases: 1}, upstream, zap.String("upstream", upstream), zap.Error(err))
	writeError(w, http.StatusBadGateway, errorUpstreamUnreachable, "the upstream "+upstream+" did not answer")
}

// answerWriter notes that the client is gone, and keeps the server from changing the header of an answer.
type answerWriter struct {
	http.ResponseWriter
	exchange *exchange
}

// Unwrap gives access to the methods of the server's writer.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter. The server would guess a content type if the
// upstream sends none. Informational answers clear the header, so it is set with each.
func (w *answerWriter) WriteHeader(status int) {
	request, header := w.exchange.request, w.Header()
	informational := status < http.StatusOK && status != http.StatusSwitchingProtocols
	if informational && !request.ProtoAtLeast(1, 1) {
		return // HTTP/1.0 has none
	}
	switch {
	case header["Content-Type"] == nil:
		header["Content-Type"] = nil
	case status == http.StatusNotModified && request.ProtoMajor == 1: // the server removes it in this spelling
		header["content-type"] = header["Content-Type"]
	}
	// The server does not check the rest of a body that the answer overtakes. After a damaged
	// one, it would take what follows for a request.
	if ended, _ := w.exchange.copied.state(); !ended && !informational && request.ProtoMajor == 1 {
		header.Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *answerWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.exchange.clientClosed = w.exchange.clientClosed || err != nil
	return n, err
}

// buffers holds the buffers of answers that are being copied. They are small because
// there is one for each open stream.
var buffers bufferPool

const bufferSize = 4 << 10

type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte {
	if buffer, ok := p.pool.Get().(*[bufferSize]byte); ok {
		return buffer[:]
	}
	return make([]byte, bufferSize)
}

func (p *bufferPool) Put(buffer []byte) { p.pool.Put((*[bufferSize]byte)(buffer)) }
