// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package server receives token events over HTTP and gRPC, within the limits of time and memory. It hands messages and lines
// to package ingest.
package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/settings"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
)

// Settings of a Server.
type Settings struct {
	Receiver receiver.Settings
	HTTP     *confighttp.ServerConfig // nil without HTTP
	GRPC     *configgrpc.ServerConfig // nil without gRPC
	Ingester *ingest.Ingester

	// IdleTimeout is how long a body may pause, and a call wait for its next message.
	IdleTimeout time.Duration
	// MaxEventBytes limits a line of NDJSON.
	MaxEventBytes int
	// MaxLiveRequests limits the requests that may stay open for hours, and MaxSharePerClient those of a client.
	MaxLiveRequests   int
	MaxSharePerClient float64
	// Closing is done once live requests must end.
	Closing context.Context
}

// Server serves HTTP and gRPC.
type Server struct {
	settings Settings
	ingester *ingest.Ingester

	// LiveShares has the requests that may stay open for hours.
	LiveShares *httpguard.Shares
	// SlowBodyTime is when the minimum rate of a body begins to count. Tests shorten it.
	SlowBodyTime time.Duration

	bodies sync.Pool        // of *messageBody
	lines  sync.Pool        // of *ingest.LineReader
	unread httpguard.Bodies // limits bodies that no handler reads to their end

	reportHTTP, reportGRPC *receiverhelper.ObsReport

	http *http.Server
	grpc *grpc.Server
	// AddrHTTP and AddrGRPC are known once the server has started.
	AddrHTTP, AddrGRPC net.Addr

	handlingHTTP sync.RWMutex // handlers hold the read lock
	cutOffHTTP   context.CancelFunc
	running      sync.WaitGroup
}

// New returns a server that is not started yet.
func New(set *Settings) (*Server, error) {
	s := &Server{
		settings: *set, ingester: set.Ingester,
		LiveShares: httpguard.NewShares(set.MaxLiveRequests, set.MaxSharePerClient), SlowBodyTime: slowBodyTime,
	}
	store := set.Ingester.Store
	s.bodies.New = func() any { return &messageBody{memory: ingest.Reservation{Store: store}} }
	s.lines.New = func() any { return ingest.NewLineReader(set.MaxEventBytes, store) }
	var errs [2]error
	s.reportHTTP, errs[0] = newReport(set.Receiver, "http")
	s.reportGRPC, errs[1] = newReport(set.Receiver, "grpc")
	return s, errors.Join(errs[:]...)
}

func newReport(set receiver.Settings, transport string) (*receiverhelper.ObsReport, error) {
	return receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: transport, ReceiverCreateSettings: set})
}

// Start listens. After an error, Stop stops what did start.
func (s *Server) Start(ctx context.Context, host component.Host) error {
	return errors.Join(
		settings.StartError("protocols::grpc", s.startGRPC(ctx, host)), settings.StartError("protocols::http", s.startHTTP(ctx, host)))
}

// Stop lets requests in progress finish until ctx ends, then aborts them. No request is in progress once it returns.
func (s *Server) Stop(ctx context.Context) error {
	var stopping sync.WaitGroup
	stopping.Go(func() { s.stopGRPC(ctx) })
	err := s.stopHTTP(ctx)
	stopping.Wait()
	if ctx.Err() != nil {
		s.settings.Receiver.Logger.Warn("aborted requests that did not finish before the shutdown timeout; senders have to send them again")
	}
	s.running.Wait()
	return err
}

// serve runs a server until it is stopped.
func (s *Server) serve(host component.Host, name string, listener net.Listener, serve func(net.Listener) error, stopped error) {
	s.settings.Receiver.Logger.Info("starting "+name+" server", zap.String("endpoint", listener.Addr().String()))
	s.running.Go(func() {
		if err := serve(listener); err != nil && !errors.Is(err, stopped) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
}
