// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

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
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

func (s *Server) startHTTP(ctx context.Context, host component.Host) error {
	cfg := s.settings.HTTP
	if cfg == nil {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc(TokensPath, s.Handle)
	mux.HandleFunc(LogsPath, refuseLogsHTTP)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.writeError(w, http.StatusNotFound,
			"unknown path; send token events to "+TokensPath+"; for spans, use the otlp receiver")
	})

	// Live bodies have no size limit, so the handlers apply it to the others.
	unlimited := *cfg
	unlimited.MaxRequestBodySize = math.MaxInt64
	options := append(decoders(cfg.CompressionAlgorithms, s.ingester.Store), confighttp.WithErrorHandler(
		func(w http.ResponseWriter, _ *http.Request, message string, status int) {
			s.writeError(w, status, message)
		}))
	server, err := unlimited.ToServer(ctx, host.GetExtensions(), s.settings.Receiver.TelemetrySettings, mux, options...)
	if err != nil {
		return err
	}
	server.Handler = s.timeBodies(server.Handler) // before decompression
	s.unread = httpguard.LimitBodies(server)      // also those that authentication refuses
	base, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	server.BaseContext = func(net.Listener) context.Context { return base }
	listener, err := cfg.ToListener(ctx)
	if err != nil {
		cutOff()
		return err
	}
	s.cutOffHTTP = cutOff
	s.http, s.AddrHTTP = server, listener.Addr()
	s.serve(host, "HTTP", listener, server.Serve, http.ErrServerClosed)
	return nil
}

// Endpoints returns where the receiver takes token events over HTTP.
func (s *Server) Endpoints() []inprocess.Endpoint {
	cfg := s.settings.HTTP
	if cfg == nil {
		return nil
	}
	base := httpguard.URLOf(cfg, s.AddrHTTP)
	if base == "" {
		return nil
	}
	return []inprocess.Endpoint{{Receiver: metadata.Type.String(), URL: base + TokensPath, Auth: cfg.Auth.HasValue()}}
}

// stopHTTP lets requests in progress finish until ctx ends, then aborts them.
func (s *Server) stopHTTP(ctx context.Context) error {
	if s.http == nil {
		return nil
	}
	err := s.http.Shutdown(ctx)
	if ctx.Err() != nil {
		err = s.http.Close()
	}
	s.cutOffHTTP()
	s.handlingHTTP.Lock() // Close does not wait for handlers
	defer s.handlingHTTP.Unlock()
	s.http = nil
	return err
}

// readers read a message by its media type. Lines of NDJSON have no reader.
var readers = map[string]func(*ingest.Request, []byte) error{
	TypeNDJSON: nil, TypeJSON: (*ingest.Request).ReadJSON, TypeProtobuf: (*ingest.Request).ReadProtobuf,
}

// Handle handles a request of token events.
func (s *Server) Handle(w http.ResponseWriter, httpReq *http.Request) {
	s.handlingHTTP.RLock()
	defer s.handlingHTTP.RUnlock()
	// The server's deadline runs from the start of the request, and over HTTP/2 it
	// also ends reading.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	if httpReq.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		s.writeError(w, http.StatusMethodNotAllowed, "the method is not supported; use POST")
		return
	}
	if limit := s.maxBodySize(); httpReq.ContentLength > limit {
		s.ingester.Unreadable(httpReq.Context(), assembly.Malformed)
		s.writeReadError(w, &http.MaxBytesError{Limit: limit})
		return
	}
	mediaType := mediaTypeOf(httpReq)
	read, ok := readers[mediaType]
	switch {
	case !ok:
		s.writeError(w, http.StatusUnsupportedMediaType,
			fmt.Sprintf("`Content-Type` is %.64q; send %s, %s or %s", mediaType, TypeNDJSON, TypeJSON, TypeProtobuf))
	case read == nil:
		s.handleLines(w, httpReq)
	default:
		s.handleMessage(w, httpReq, read)
	}
}
