// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/sharedcomponent"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/server"
)

// NewFactory creates the factory of the token_stream receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithTraces(createTraces, metadata.TracesStability),
		receiver.WithMetrics(createMetrics, metadata.MetricsStability),
		receiver.WithLogs(refuseLogs, component.StabilityLevelUndefined),
	)
}

func createDefaultConfig() component.Config {
	http := confighttp.NewDefaultServerConfig()
	http.NetAddr.Endpoint = "localhost:4319"
	http.MaxRequestBodySize = server.DefaultMaxBodySize
	http.CompressionAlgorithms = slices.Clone(compressionAlgorithms)

	grpc := configgrpc.NewDefaultServerConfig()
	grpc.NetAddr.Endpoint = "localhost:4320"
	grpc.MaxConcurrentStreams = 1000

	return &Config{
		Protocols: Protocols{
			HTTP: configoptional.Some(http),
			GRPC: configoptional.Some(grpc),
		},
		ServiceName:        names.UnknownService,
		IdleTimeout:        time.Minute,
		FirstTokenTimeout:  10 * time.Minute,
		MaxStreams:         100_000,
		MaxChunksPerStream: 1_000_000,
		MaxEventBytes:      64 << 10,
		MaxMemoryMiB:       defaultMemoryMiB(),
		MaxLiveRequests:    10_000,
		MaxSharePerClient:  httpguard.DefaultShare,
		Latency:            configoptional.Default(*annotate.DefaultConfig()),
		Series:             configoptional.Default(publish.NewDefaultConfig()),
		Liveness:           configoptional.Default(engines.DefaultConfig()),
		Spans:              SpansConfig{Share: 1, Breached: true},
	}
}

// receivers shares a receiver between its traces and its metrics pipelines.
var receivers sharedcomponent.Map[*Config, *tokenStreamReceiver]

func createTraces(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
	shared, err := share(set, cfg)
	if err != nil {
		return nil, err
	}
	shared.Component.sendTraces(next)
	return shared, nil
}

func createMetrics(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	shared, err := share(set, cfg)
	if err != nil {
		return nil, err
	}
	if err := shared.Component.sendMetrics(next); err != nil {
		return nil, errors.Join(err, shared.Shutdown(ctx))
	}
	return shared, nil
}

func refuseLogs(context.Context, receiver.Settings, component.Config, consumer.Logs) (receiver.Logs, error) {
	return nil, errors.New(server.NoLogs)
}

func share(set receiver.Settings, cfg component.Config) (*sharedcomponent.Handle[*tokenStreamReceiver], error) {
	config := cfg.(*Config)
	return receivers.Get(config, func() (*tokenStreamReceiver, error) { return newReceiver(config, set) })
}
