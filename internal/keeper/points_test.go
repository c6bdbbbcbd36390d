// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// requestsOf returns a data point of requests of a model since a start.
func requestsOf(model string, n int64, start, at time.Time) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	m := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("tokenpulse.requests")
	m.SetEmptySum().SetIsMonotonic(true)
	m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := m.Sum().DataPoints().AppendEmpty()
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	p.SetTimestamp(pcommon.NewTimestampFromTime(at))
	p.SetIntValue(n)
	p.Attributes().PutStr("outcome", "success")
	p.Attributes().PutStr("model", model)
	return metrics
}

func withPoints(s *Settings) { s.Points = true }

// At the limit of series, requests go to the overflow series; at that of streams, those of
// new ones are ignored. Both are counted.
func TestRecordMetrics_LimitsAreCounted(t *testing.T) {
	h := newHarness(t, func(s *Settings) {
		withPoints(s)
		s.Config.Series.MaxSeries = 2
		s.Engine = series.NewEngine(s.Config.EngineOptions())
	})
	start := h.clock.Add(time.Millisecond)
	for i := range 201 {
		h.RecordMetrics(t.Context(), requestsOf(fmt.Sprint("model-", i), 3, start, start.Add(time.Second)))
	}
	require.EqualValues(t, 200, keepertest.Value(t, h.telemetry, "token_sli_point_streams"))
	require.EqualValues(t, 200, keepertest.Value(t, h.telemetry, "token_sli_point_streams_limit"))
	require.EqualValues(t, 200, keepertest.Value(t, h.telemetry, "token_sli_points"))
	require.EqualValues(t, 198*3, keepertest.Value(t, h.telemetry, "token_sli_requests_overflow"))
	require.Equal(t, map[string]int64{"limit": 1}, keepertest.Values(t, h.telemetry, "token_sli_points_ignored", "reason"))
	require.Equal(t, 1, h.logs.FilterMessageSnippet("raise `max_series`").Len())

	h.clock = h.clock.Add(2 * time.Hour)
	h.Round(t.Context())
	require.Zero(t, keepertest.Value(t, h.telemetry, "token_sli_point_streams"), "streams that ended are forgotten")
}

func TestRecordMetrics_WarnsOnceOfOtherBuckets(t *testing.T) {
	h := newHarness(t, withPoints)
	metrics := pmetric.NewMetrics()
	m := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("tokenpulse.time_to_first_token")
	p := m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
	m.ExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	p.SetStartTimestamp(1)
	p.SetTimestamp(2)
	p.SetScale(3)
	p.Attributes().PutStr("outcome", "success")
	for range 3 {
		h.RecordMetrics(t.Context(), metrics)
	}
	require.Equal(t, map[string]int64{"wrong_scale": 3}, keepertest.Values(t, h.telemetry, "token_sli_points_ignored", "reason"))
	require.Equal(t, 1, h.logs.FilterMessageSnippet("other buckets than those of scale 6").Len())
}
