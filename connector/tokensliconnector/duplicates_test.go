// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector/internal/metadatatest"
	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// breached returns n requests that breached the objective's SLO.
func breached(n int) ptrace.Traces {
	var all []map[string]any
	for range n {
		all = append(all, map[string]any{"tokenpulse.slo.breached": []any{"tpot"}})
	}
	return keepertest.Batch(all...)
}

func (h *logHarness) spent() (bad uint64) {
	h.keeper.Tracker.Visit(h.clock, func(b *slo.Budgets) { bad += b.Each[0].Recent.Budget.Bad })
	return bad
}

// A consumer beside the connector refuses the batch, which is delivered 40 times.
func TestConsumeTraces_RedeliveredBreachesHaveOneEvent(t *testing.T) {
	h := newLogHarness(t, nil)
	traces := breached(50)
	for range 40 {
		require.NoError(t, h.ConsumeTraces(t.Context(), traces))
	}
	require.Len(t, h.events(), 50)
	require.EqualValues(t, 50, h.spent())
	require.EqualValues(t, 1950, keepertest.Value(t, h.telemetry, "token_sli_requests_duplicate"))
}

func TestConsumeTraces_RefusedEventsAreSentWithTheRedelivery(t *testing.T) {
	h := newLogHarness(t, nil)
	traces := breached(3)
	h.to.refuses = true
	for range 2 {
		require.NoError(t, h.ConsumeTraces(t.Context(), traces))
	}
	h.to.refuses = false
	require.Empty(t, h.events())
	for range 2 {
		require.NoError(t, h.ConsumeTraces(t.Context(), traces))
	}
	require.Len(t, h.events(), 3)
	require.EqualValues(t, 3, h.spent(), "verdicts count once")
	metadatatest.AssertEqualConnectorTokenSliEventsLost(t, h.telemetry, []metricdata.DataPoint[int64]{{Value: 6}}, metricdatatest.IgnoreTimestamp())
}

func TestConsumeTraces_ConcurrentDeliveriesHaveOneEvent(t *testing.T) {
	h := newLogHarness(t, nil)
	traces := breached(100)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { _ = h.ConsumeTraces(t.Context(), traces) })
	}
	group.Wait()
	require.Len(t, h.events(), 100)
}

func TestConsumeTraces_EventsAreSentAgainWithoutDeduplication(t *testing.T) {
	h := newLogHarness(t, func(c *Config) { c.Publish.Shared.Deduplication.Horizon = 0 })
	traces := breached(3)
	for range 2 {
		require.NoError(t, h.ConsumeTraces(t.Context(), traces))
	}
	require.Len(t, h.events(), 6)
}

func TestRound_ForgetsDeliveredEventsAfterTheHorizon(t *testing.T) {
	h := newLogHarness(t, nil)
	traces, began := breached(3), h.clock
	require.NoError(t, h.ConsumeTraces(t.Context(), traces))
	h.later(t, time.Hour)
	h.clock = began // at which only the round, not the next traces, can have forgotten them
	require.NoError(t, h.ConsumeTraces(t.Context(), traces))
	require.Len(t, h.events(), 3)
}

func TestBreachEvent_ListsObjectivesBeyondTheLimit(t *testing.T) {
	h := newLogHarness(t, nil)
	names := repeated("invented", 1000)
	names = append(names, "tpot", "other", "tpot")
	thresholds := repeated(1.0, 1003)
	thresholds[1000] = 2.0
	require.NoError(t, h.ConsumeTraces(t.Context(), keepertest.Batch(map[string]any{
		"tokenpulse.slo.breached": names, "tokenpulse.slo.breached.indicator": repeated("x", 1003), "tokenpulse.slo.breached.threshold": thresholds,
	})))
	breaches, _ := h.events()[0].Attributes().Get("tokenpulse.slo.breaches")
	require.Equal(t, 65, breaches.Slice().Len())
	require.Equal(t, map[string]any{"slo": "tpot", "indicator": "x", "threshold": 2.0}, breaches.Slice().At(64).Map().AsRaw())
}

// A connector must survive whatever a damaged storage returns.
func TestAlerts_DecodeHostileNotes(t *testing.T) {
	newTestAlerts := func() *alerts {
		config := createDefaultConfig().(*Config)
		config.Publish.Shared.Series.Dimensions = series.DimensionsOf("model")
		config.Publish.Shared.Series.MaxSeries = 1
		a := newAlerts(&config.Publish.Shared)
		return &a
	}
	valid := `{"series":"AWEA","slo":"tpot","alert":"fast_burn"}`
	var many []savedAlert
	for i := range 1000 {
		many = append(many, savedAlert{[]byte("\x01a\x00"), fmt.Sprint("slo-", i), "fast_burn", 0})
	}
	tooMany, err := json.Marshal(many)
	require.NoError(t, err)
	tests := map[string]struct {
		notes string
		want  int
		err   string
	}{
		"empty":            {"", 0, ""},
		"null":             {"null", 0, ""},
		"valid":            {"[" + valid + "]", 1, ""},
		"garbage":          {"\x00\xff", 0, "invalid character"},
		"truncated":        {"[" + valid, 0, "unexpected end"},
		"an object":        {valid, 0, "cannot unmarshal object"},
		"deeply nested":    {strings.Repeat("[", 1_000_000), 0, "exceeded max depth"},
		"a malformed key":  {`[{"series":"AWE=","slo":"tpot","alert":"fast_burn"},` + valid + "]", 1, ""},
		"a huge key":       {`[{"series":"//////////8B","slo":"tpot","alert":"fast_burn"},` + valid + "]", 1, ""},
		"no key":           {`[{"slo":"tpot","alert":"fast_burn"}]`, 1, ""},
		"no names":         {`[{"series":"AWEA"},` + valid + "]", 1, ""},
		"long names":       {`[{"series":"AWEA","slo":"` + strings.Repeat("x", 300) + `","alert":"a"},{"series":"AWEA","slo":"a","alert":"` + strings.Repeat("x", 300) + `"}]`, 0, ""},
		"wrong types":      {`[{"series":7,"slo":[],"alert":{}},` + valid + "]", 1, "cannot unmarshal"},
		"too many alerts":  {string(tooMany), 0, "more than 768 saved alerts"},
		"too many bytes":   {strings.Repeat(" ", largestNotes+1), 0, "67108865 bytes of saved alerts"},
		"a huge JSON text": {`[{"series":"AWEA","slo":"tpot","alert":"` + strings.Repeat("x", largestNotes-100) + `"}]`, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := newTestAlerts()
			if err := a.decode([]byte(test.notes)); test.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.err)
			}
			require.Len(t, a.get(), test.want)
			logs, _ := a.check(slo.NewTracker(slo.TrackerOptions{MaxSeries: 1}, time.Now()), time.Now())
			require.Equal(t, test.want, logs.LogRecordCount(), "alerts that are gone end")
		})
	}
}

func FuzzAlertsDecode(f *testing.F) {
	f.Add([]byte(`[{"series":"AWEA","slo":"tpot","alert":"fast_burn"}]`))
	f.Add([]byte(`[{"series":"","slo":"a","alert":"b"},{}]`))
	f.Fuzz(func(t *testing.T, notes []byte) {
		config := createDefaultConfig().(*Config)
		config.Publish.Shared.Series.Dimensions = series.DimensionsOf("model")
		a := newAlerts(&config.Publish.Shared)
		_ = a.decode(notes)
		a.check(slo.NewTracker(slo.TrackerOptions{MaxSeries: 1}, time.Now()), time.Now())
		saved := a.encode()
		b := newAlerts(&config.Publish.Shared)
		require.NoError(t, b.decode(saved))
		require.True(t, bytes.Equal(saved, b.encode()))
	})
}
