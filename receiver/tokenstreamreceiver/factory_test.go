// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

var errNoMeter = errors.New("no instruments")

// failingMeters fail to create the instruments of one scope.
type failingMeters struct {
	noop.MeterProvider
	scope string
}

func (m failingMeters) Meter(name string, options ...metric.MeterOption) metric.Meter {
	if name == m.scope {
		return failingMeter{}
	}
	return m.MeterProvider.Meter(name, options...)
}

type failingMeter struct{ noop.Meter }

func (failingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return noop.Int64Counter{}, errNoMeter
}

func TestCreateMetrics_ForgetsTheReceiverAfterAnError(t *testing.T) {
	for name, tt := range map[string]struct {
		share float64
		scope string
	}{
		"of the share":  {1e-20, ""}, // Validate would report it
		"of the series": {1, "github.com/tokenpulse/tokenpulse/internal/series/keeper"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.Spans.Share = tt.share
			set := receivertest.NewNopSettings(metadata.Type)
			set.MeterProvider = failingMeters{scope: tt.scope}
			_, err := createMetrics(t.Context(), set, cfg, consumertest.NewNop())
			require.Error(t, err)
			created := false
			_, err = receivers.Get(cfg, func() (*tokenStreamReceiver, error) { created = true; return nil, errNoMeter })
			require.ErrorIs(t, err, errNoMeter)
			require.True(t, created)
		})
	}
}
