// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/metadata"
)

// NewFactory creates the factory of the token_tap receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(metadata.Type, createDefaultConfig, receiver.WithTraces(createTraces, metadata.TracesStability))
}

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "localhost:4321"
	server.WriteTimeout = 0                   // it would cut answers
	server.CompressionAlgorithms = []string{} // request bodies pass as they are
	return &Config{
		Server:             server,
		Upstream:           defaultUpstream(),
		ServiceName:        names.UnknownService,
		Propagate:          true,
		MaxStreams:         20_000,
		MaxChunksPerStream: 1_000_000,
		MaxEventBytes:      1 << 20,
		MaxMemoryMiB:       512,
		MaxStreamDuration:  time.Hour,
		MaxQueuedSpans:     10_000,
		Liveness:           configoptional.Default(defaultLiveness()),
	}
}

func createTraces(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
	return newReceiver(cfg.(*Config), set, next)
}
