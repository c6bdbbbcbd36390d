// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/sharedcomponent"
)

// NewFactory creates a factory for the token_sli exporter.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithTraces(createTraces, metadata.TracesStability),
		exporter.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

// exporters holds one exporter for the traces and metrics pipelines of an ID: both add to
// the same series.
var exporters sharedcomponent.Map[*Config, *tokenSLI]

func share(set exporter.Settings, config *Config) (*sharedcomponent.Handle[*tokenSLI], error) {
	inprocess.IdleExporters.Remove(config)
	return exporters.Get(config, func() (*tokenSLI, error) { return newTokenSLI(set, config) })
}

func createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	e, err := share(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	traces, err := exporterhelper.NewTraces(ctx, set, cfg, e.Component.consume, options(e)...)
	if err != nil {
		return nil, errors.Join(err, e.Shutdown(ctx))
	}
	return traces, nil
}

func createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	e, err := share(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	metrics, err := exporterhelper.NewMetrics(ctx, set, cfg, e.Component.consumeMetrics, options(e)...)
	if err != nil {
		return nil, errors.Join(err, e.Shutdown(ctx))
	}
	return metrics, nil
}

// options add no queue and retries: recording a batch in memory neither waits nor fails.
func options(e *sharedcomponent.Handle[*tokenSLI]) []exporterhelper.Option {
	return []exporterhelper.Option{
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithStart(e.Start),
		exporterhelper.WithShutdown(e.Shutdown),
	}
}
