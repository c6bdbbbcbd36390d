// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/metadata"
)

// deliver runs a test with a delivery whose queue holds a number of spans, and with a clock that only
// moves while every goroutine waits.
func deliver(t *testing.T, queued int, test func(*testing.T, *delivery, *consumertest.TracesSink)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg, sink := createDefaultConfig().(*Config), new(consumertest.TracesSink)
		cfg.MaxQueuedSpans = queued
		telemetry, err := metadata.NewTelemetryBuilder(componenttest.NewNopTelemetrySettings())
		require.NoError(t, err)
		d, err := newDelivery(cfg, receivertest.NewNopSettings(metadata.Type), telemetry, sink)
		require.NoError(t, err)
		d.start()
		test(t, d, sink)
		d.stop(t.Context())
	})
}

func TestDelivery_SpansOfATenthOfASecondShareABatch(t *testing.T) {
	deliver(t, 100, func(t *testing.T, d *delivery, sink *consumertest.TracesSink) {
		for range 3 {
			d.send(ptrace.NewSpan())
			time.Sleep(30 * time.Millisecond)
		}
		synctest.Wait()
		require.Empty(t, sink.AllTraces())
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		require.Len(t, sink.AllTraces(), 1)
		require.Equal(t, 3, sink.SpanCount())
	})
}

// With a small queue, waiting would drop spans.
func TestDelivery_DoesNotWaitWhileTheQueueIsHalfFull(t *testing.T) {
	deliver(t, 4, func(t *testing.T, d *delivery, sink *consumertest.TracesSink) {
		d.send(ptrace.NewSpan())
		synctest.Wait()
		d.send(ptrace.NewSpan())
		synctest.Wait()
		require.Empty(t, sink.AllTraces())
		d.send(ptrace.NewSpan())
		synctest.Wait()
		require.Equal(t, 3, sink.SpanCount())
	})
}

func TestDelivery_StopsWithoutWaiting(t *testing.T) {
	deliver(t, 100, func(t *testing.T, d *delivery, sink *consumertest.TracesSink) {
		d.send(ptrace.NewSpan())
		synctest.Wait()
		begin := time.Now()
		d.stop(t.Context())
		require.Zero(t, time.Since(begin))
		require.Equal(t, 1, sink.SpanCount())
	})
}
