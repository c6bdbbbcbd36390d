// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

// Server listens for load balancers.
type Server struct {
	Address net.Addr

	server  *http.Server
	serving sync.WaitGroup
}

// Start listens. hosts are further values of the header Host of requests to a loopback address.
func Start(
	ctx context.Context, host component.Host, config *confighttp.ServerConfig, hosts []string, watch *engines.Watch, telemetry component.TelemetrySettings,
) (*Server, error) {
	listener, err := config.ToListener(ctx)
	if err != nil {
		return nil, err
	}
	browsers := httpguard.NewBrowsers(config, listener.Addr(), hosts)
	server, err := config.ToServer(ctx, host.GetExtensions(), telemetry, browsers.Protect("token_tap", newHandler(watch, telemetry.Logger)))
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	httpguard.LimitBodies(server)
	telemetry.Logger.Info("answering whether engines are ready", zap.Stringer("endpoint", listener.Addr()))
	s := &Server{Address: listener.Addr(), server: server}
	s.serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return s, nil
}

// answerTimeout limits answers in progress at shutdown.
const answerTimeout = time.Second

// Shutdown ends the server. A nil one does not listen.
func (s *Server) Shutdown(ctx context.Context) error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if ctx.Err() != nil {
		err = s.server.Close()
	}
	s.serving.Wait()
	return err
}
