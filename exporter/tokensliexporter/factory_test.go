// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/metadata"
)

var errNoMeter = errors.New("no instruments")

// failingMeters fail to create the instruments of exporterhelper.
type failingMeters struct{ noop.MeterProvider }

func (m failingMeters) Meter(name string, options ...metric.MeterOption) metric.Meter {
	if name == "go.opentelemetry.io/collector/exporter/exporterhelper" {
		return failingMeter{}
	}
	return m.MeterProvider.Meter(name, options...)
}

type failingMeter struct{ noop.Meter }

func (failingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return noop.Int64Counter{}, errNoMeter
}

func TestCreate_ForgetsTheExporterAfterAnError(t *testing.T) {
	for name, create := range map[string]func(*Config) error{
		"traces": func(cfg *Config) error {
			set := exportertest.NewNopSettings(metadata.Type)
			set.MeterProvider = failingMeters{}
			_, err := createTraces(t.Context(), set, cfg)
			return err
		},
		"metrics": func(cfg *Config) error {
			set := exportertest.NewNopSettings(metadata.Type)
			set.MeterProvider = failingMeters{}
			_, err := createMetrics(t.Context(), set, cfg)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			require.ErrorIs(t, create(cfg), errNoMeter)
			created := false
			_, err := exporters.Get(cfg, func() (*tokenSLI, error) { created = true; return nil, errNoMeter })
			require.ErrorIs(t, err, errNoMeter)
			require.True(t, created)
		})
	}
}
