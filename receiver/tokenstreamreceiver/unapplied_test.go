// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

// An SLO that applies to no request is reported after 100 requests, however often the receiver looks
// at one: to choose its span, to write it, and to record it.
func TestUnapplied_CountsEachRequestOnce(t *testing.T) {
	misspelt := judge.SLOConfig{
		Name: "misspelt", Indicator: "time_to_first_token", Threshold: "1s", Match: map[string]string{names.GenAIRequestModel: "none"},
	}
	ofLongAnswers := judge.SLOConfig{
		Name: "long", Indicator: "time_to_first_token", Threshold: "1s", Match: map[string]string{"tokenpulse.token_count": "1000"},
	}
	breached := judge.SLOConfig{Name: "breached", Indicator: "time_to_first_token", Threshold: "1ms"}
	for name, tt := range map[string]struct {
		spans, metrics bool
		change         func(*Config)
		attributes     []*commonpb.KeyValue
	}{
		"spans":                         {true, false, func(*Config) {}, nil},
		"series":                        {false, true, func(*Config) {}, nil},
		"series and all spans":          {true, true, func(*Config) {}, nil},
		"series and a share":            {true, true, selecting(0.5, true), nil},
		"series and breaches":           {true, true, selecting(0, true), nil},
		"series and a share of no more": {true, true, selecting(0.5, false), nil},
		"series by way of spans":        {true, true, selecting(0.5, true), []*commonpb.KeyValue{str(names.GenAIInputTokens, "7")}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := createDefaultConfig().(*Config)
				ttftSLO(cfg)
				cfg.Latency.Get().SLOs = []judge.SLOConfig{misspelt, ofLongAnswers, breached}
				tt.change(cfg)
				require.NoError(t, cfg.Validate())
				core, logs := observer.New(zapcore.WarnLevel)
				settings := receivertest.NewNopSettings(metadata.Type)
				settings.Logger = zap.New(core)
				shared, err := share(settings, cfg)
				require.NoError(t, err)
				r := shared.Component
				if tt.spans {
					r.sendTraces(new(sink))
				}
				if tt.metrics {
					require.NoError(t, r.sendMetrics(new(consumertest.MetricsSink)))
				}
				time.Sleep(time.Hour)
				for i := range 100 {
					require.Zero(t, logs.Len(), "after %d requests", i)
					stream := finishedStream(strconv.Itoa(i))
					stream.Start.Attributes = tt.attributes
					var applied ingest.Answer
					req := take(t, r, &applied)
					require.NoError(t, req.ReadProtobuf(requestOfStreams(t, stream)))
					require.Nil(t, req.Commit(t.Context()))
					require.Equal(t, 1, applied.Accepted)
					r.ingester.Put(req)
				}
				require.Equal(t, 1, logs.Len())
				require.Equal(t, []any{"misspelt", "long"}, logs.All()[0].ContextMap()["slos"])
				require.NoError(t, shared.Shutdown(t.Context()))
			})
		})
	}
}
