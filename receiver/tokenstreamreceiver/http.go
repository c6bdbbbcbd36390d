package tokenstreamreceiver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/wire"
)

const (
	tokensPath = "/v1/tokens"

	typeNDJSON   = "application/x-ndjson"
	typeJSON     = "application/json"
	typeProtobuf = "application/x-protobuf"
)

func (r *tokenStreamReceiver) startHTTP(ctx context.Context, host component.Host) error {
	cfg := r.cfg.Protocols.HTTP.Get()
	if cfg == nil {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc(tokensPath, r.handler(r.handleTokens))
	mux.HandleFunc(logsPath, r.handler(r.handleLogs))

	// A body that stays open has no size: the limit is for the handlers to apply.
	unlimited := *cfg
	unlimited.MaxRequestBodySize = math.MaxInt64
	server, err := unlimited.ToServer(ctx, host.GetExtensions(), r.settings.TelemetrySettings, mux, confighttp.WithErrorHandler(
		func(w http.ResponseWriter, req *http.Request, message string, status int) {
			r.writeError(w, req, status, message)
		}))
	if err != nil {
		return err
	}
	server.Handler = r.timeBodies(server.Handler) // before they are decompressed
	base, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	server.BaseContext = func(net.Listener) context.Context { return base }
	listener, err := cfg.ToListener(ctx)
	if err != nil {
		cutOff()
		return err
	}
	r.cutOffHTTP = cutOff
	r.serverHTTP, r.addrHTTP = server, listener.Addr()
	r.serve(host, "HTTP", listener, server.Serve, http.ErrServerClosed)
	return nil
}

// stopHTTP lets requests under way finish until ctx ends, then cuts them off.
func (r *tokenStreamReceiver) stopHTTP(ctx context.Context) error {
	if r.serverHTTP == nil {
		return nil
	}
	err := r.serverHTTP.Shutdown(ctx)
	if ctx.Err() != nil {
		err = r.serverHTTP.Close()
	}
	r.cutOffHTTP()
	r.handlingHTTP.Lock() // the server itself does not wait for handlers that it cuts off
	defer r.handlingHTTP.Unlock()
	r.serverHTTP = nil
	return err
}

// handler is what all paths have in common. It leaves the body to handle.
func (r *tokenStreamReceiver) handler(handle func(w http.ResponseWriter, req *http.Request, under *request, mediaType string)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		r.handlingHTTP.RLock()
		defer r.handlingHTTP.RUnlock()
		// The server's deadline counts from when the request began, and over HTTP/2
		// it ends the reading too.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		if req.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			r.writeError(w, req, http.StatusMethodNotAllowed, "use POST")
			return
		}
		under := r.requests.Get().(*request)
		defer r.requests.Put(under)
		if limit := r.maxBodySize(); req.ContentLength > limit {
			under.unreadable(req.Context())
			r.writeReadError(w, req, &http.MaxBytesError{Limit: limit})
			return
		}
		handle(w, req, under, mediaTypeOf(req))
	}
}

func mediaTypeOf(req *http.Request) string {
	mediaType, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	return mediaType
}

// handleTokens takes what the contract's own formats say.
func (r *tokenStreamReceiver) handleTokens(w http.ResponseWriter, req *http.Request, under *request, mediaType string) {
	under.reset(r.reportHTTP, mediaType == typeNDJSON)
	switch mediaType {
	case typeNDJSON:
		r.handleLines(w, req, under)
	case typeJSON:
		r.handleMessage(w, req, under, func(body []byte) error {
			message, err := wire.JSONToProtobuf(body)
			if err != nil {
				return err
			}
			return under.readProtobuf(message)
		})
	case typeProtobuf:
		r.handleMessage(w, req, under, under.readProtobuf)
	default:
		r.writeError(w, req, http.StatusUnsupportedMediaType,
			"Content-Type must be "+typeNDJSON+", "+typeJSON+" or "+typeProtobuf)
	}
}

func (r *tokenStreamReceiver) maxBodySize() int64 {
	if limit := r.cfg.Protocols.HTTP.Get().MaxRequestBodySize; limit > 0 {
		return limit
	}
	return defaultMaxBodySize
}

// handleMessage reads a body that is one message, and applies it whole.
func (r *tokenStreamReceiver) handleMessage(w http.ResponseWriter, req *http.Request, under *request, read func([]byte) error) {
	// Once more, because the declared length is that of a compressed body.
	body := http.MaxBytesReader(w, req.Body, r.maxBodySize())
	under.body.Reset()
	if size := req.ContentLength; size > 0 { // what is declared is not always sent
		under.body.Grow(int(min(size, keepBody)) + bytes.MinRead)
	}
	if _, err := under.body.ReadFrom(body); err != nil {
		if r.closing.Err() != nil {
			r.breakOff(w, req, under, errShutdown)
			return
		}
		under.unreadable(req.Context())
		r.writeReadError(w, req, err)
		return
	}
	if err := read(under.body.Bytes()); err != nil {
		under.unreadable(req.Context())
		status := http.StatusBadRequest
		if assembly.ReasonOf(err) == assembly.Limit {
			status = http.StatusRequestEntityTooLarge
		}
		r.writeError(w, req, status, err.Error())
		return
	}
	r.finish(w, req, under, under.commit(req.Context()))
}

// handleLines reads NDJSON. A body of declared length is applied whole, or not
// at all if it breaks off. Any other is live: it may go on for hours, and what
// there is of it is applied before more is waited for.
func (r *tokenStreamReceiver) handleLines(w http.ResponseWriter, req *http.Request, under *request) {
	live := req.ContentLength < 0
	refused, err := readLines(req, under, live)
	switch {
	case refused == nil && err == nil:
		r.finish(w, req, under, nil)
		return
	case refused != nil:
	case r.closing.Err() != nil:
		refused = errShutdown
	default:
		under.applied.conclude("the body broke off: " + err.Error())
	}
	r.breakOff(w, req, under, refused)
}

// readLines reads a body to its end. An error is that of the body.
func readLines(req *http.Request, under *request, live bool) (*refusal, error) {
	under.lines.reset(req.Body)
	for {
		under.readLines()
		if live {
			if refused := under.commit(req.Context()); refused != nil {
				return refused, nil
			}
		}
		switch err := under.lines.fill(); {
		case errors.Is(err, io.EOF):
			return under.commit(req.Context()), nil
		case err != nil:
			return nil, err
		}
	}
}

// breakOff answers before the end of the body.
func (r *tokenStreamReceiver) breakOff(w http.ResponseWriter, req *http.Request, under *request, refused *refusal) {
	// Without this the server would wait for the rest of the body.
	w.Header().Set("Connection", "close")
	r.finish(w, req, under, refused)
}

// finish answers with what became of a request.
func (r *tokenStreamReceiver) finish(w http.ResponseWriter, req *http.Request, under *request, refused *refusal) {
	status := http.StatusOK
	if refused != nil {
		status = refused.http
		under.applied.conclude(refused.message)
		if refused.retry {
			w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
		}
	} else if under.applied.Accepted == 0 && len(under.applied.Errors) > 0 && !takesLogs(req) { // OTLP calls that a partial success
		status = http.StatusBadRequest
	}
	r.write(w, req, status, &under.applied)
}

func (r *tokenStreamReceiver) writeReadError(w http.ResponseWriter, req *http.Request, err error) {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		advice := "send smaller requests"
		if !takesLogs(req) {
			advice += ", or NDJSON without a Content-Length"
		}
		w.Header().Set("Connection", "close")
		r.writeError(w, req, http.StatusRequestEntityTooLarge, fmt.Sprintf(
			"the body is larger than %d bytes (max_request_body_size): %s", tooLarge.Limit, advice))
		return
	}
	r.writeError(w, req, http.StatusBadRequest, "the body cannot be read: "+err.Error())
}

func (r *tokenStreamReceiver) writeError(w http.ResponseWriter, req *http.Request, status int, message string) {
	r.write(w, req, status, &answer{Errors: []answerError{{Message: message}}})
}

func (r *tokenStreamReceiver) write(w http.ResponseWriter, req *http.Request, status int, answer *answer) {
	if timeout := r.cfg.Protocols.HTTP.Get().WriteTimeout; timeout > 0 {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout))
	}
	body, contentType := answer.encode(status, req)
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // no browser takes it for HTML; a client that is gone does not care
}

// encode encodes an answer for the path of its request.
func (a *answer) encode(status int, req *http.Request) (body []byte, contentType string) {
	if takesLogs(req) {
		return a.encodeLogs(status, mediaTypeOf(req))
	}
	body, _ = json.Marshal(a) // it has nothing that cannot be encoded
	return append(body, '\n'), typeJSON
}

func takesLogs(req *http.Request) bool { return req.URL.Path == logsPath }
