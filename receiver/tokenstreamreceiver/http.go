// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

func (r *tokenStreamReceiver) startHTTP(ctx context.Context, host component.Host) error {
	cfg := r.cfg.Protocols.HTTP.Get()
	if cfg == nil {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc(tokensPath, r.handle)
	mux.HandleFunc(logsPath, refuseLogsHTTP)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		r.writeError(w, http.StatusNotFound,
			"unknown path; send token events to "+tokensPath+"; for spans, use the otlp receiver")
	})

	// Live bodies have no size limit, so the handlers apply it to the others.
	unlimited := *cfg
	unlimited.MaxRequestBodySize = math.MaxInt64
	options := append(decoders(cfg.CompressionAlgorithms, r.ingester.store), confighttp.WithErrorHandler(
		func(w http.ResponseWriter, _ *http.Request, message string, status int) {
			r.writeError(w, status, message)
		}))
	server, err := unlimited.ToServer(ctx, host.GetExtensions(), r.settings.TelemetrySettings, mux, options...)
	if err != nil {
		return err
	}
	server.Handler = r.timeBodies(server.Handler) // before decompression
	r.unread = httpguard.LimitBodies(server)      // also those that authentication refuses
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

// endpoints returns where the receiver takes token events over HTTP.
func (r *tokenStreamReceiver) endpoints() []inprocess.Endpoint {
	cfg := r.cfg.Protocols.HTTP.Get()
	if cfg == nil {
		return nil
	}
	base := httpguard.URLOf(cfg, r.addrHTTP)
	if base == "" {
		return nil
	}
	return []inprocess.Endpoint{{Receiver: metadata.Type.String(), URL: base + tokensPath, Auth: cfg.Auth.HasValue()}}
}

// stopHTTP lets requests in progress finish until ctx ends, then aborts them.
func (r *tokenStreamReceiver) stopHTTP(ctx context.Context) error {
	if r.serverHTTP == nil {
		return nil
	}
	err := r.serverHTTP.Shutdown(ctx)
	if ctx.Err() != nil {
		err = r.serverHTTP.Close()
	}
	r.cutOffHTTP()
	r.handlingHTTP.Lock() // Close does not wait for handlers
	defer r.handlingHTTP.Unlock()
	r.serverHTTP = nil
	return err
}

// readers read a message by its media type. Lines of NDJSON have no reader.
var readers = map[string]func(*request, []byte) error{
	typeNDJSON: nil, typeJSON: (*request).readJSON, typeProtobuf: (*request).readProtobuf,
}

// handle handles a request of token events.
func (r *tokenStreamReceiver) handle(w http.ResponseWriter, httpReq *http.Request) {
	r.handlingHTTP.RLock()
	defer r.handlingHTTP.RUnlock()
	// The server's deadline runs from the start of the request, and over HTTP/2 it
	// also ends reading.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	if httpReq.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		r.writeError(w, http.StatusMethodNotAllowed, "the method is not supported; use POST")
		return
	}
	if limit := r.maxBodySize(); httpReq.ContentLength > limit {
		r.ingester.unreadable(httpReq.Context(), assembly.Malformed)
		r.writeReadError(w, &http.MaxBytesError{Limit: limit})
		return
	}
	mediaType := mediaTypeOf(httpReq)
	read, ok := readers[mediaType]
	switch {
	case !ok:
		r.writeError(w, http.StatusUnsupportedMediaType,
			fmt.Sprintf("`Content-Type` is %.64q; send %s, %s or %s", mediaType, typeNDJSON, typeJSON, typeProtobuf))
	case read == nil:
		r.handleLines(w, httpReq)
	default:
		r.handleMessage(w, httpReq, read)
	}
}
