// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// abouts returns what the current doubts with a message are about.
func (h *harness) abouts(message string) (all []string) {
	for _, d := range h.doubts.Current() {
		if d.Message == message {
			all = append(all, d.About)
		}
	}
	return all
}

func TestDoubts_NameDimensionsThatNoRequestHas(t *testing.T) {
	h := newHarness(t, func(s *Settings) {
		s.Config.Series.Dimensions = []string{"gen_ai.provider.name", "model", "replcia", "error.type"}
		s.Engine = series.NewEngine(s.Config.EngineOptions())
	})
	h.Record(t.Context(), spans(t, 99, met))
	h.Round(t.Context())
	require.Empty(t, h.doubts.Current(), "too few requests")
	h.Record(t.Context(), spans(t, 1, met))
	h.Round(t.Context())
	h.Round(t.Context())
	require.Equal(t, []string{"replcia"}, h.abouts(dimensionMessage), "failures and defaults may be absent")
	require.Equal(t, 1, h.logs.Len())
	require.Equal(t, map[string]any{"dimension": "replcia"}, h.logs.All()[0].ContextMap())

	h.clock = h.clock.Add(6 * time.Minute)
	require.Empty(t, h.doubts.Current())
	h.Round(t.Context())
	require.Equal(t, []string{"replcia"}, h.abouts(dimensionMessage), "its cause lasts")
	require.Equal(t, 1, h.logs.Len())
	require.NoError(t, h.Shutdown(t.Context()))
}

func TestDoubts_NameObjectivesThatThisProcessDoesNotDefine(t *testing.T) {
	h := newHarness(t, func(s *Settings) {
		s.Config.Objectives = []Objective{{SLO: "tpto", Objective: 0.9, Window: time.Hour}, {SLO: "ttft", Objective: 0.9, Window: time.Hour}, {SLO: "all", Objective: 0.9, Window: time.Hour}}
	})
	h.Record(t.Context(), spans(t, 20, met))
	h.Round(t.Context())
	require.Empty(t, h.doubts.Current(), "another Collector may define them")
	owner := new(int)
	inprocess.SLOs.Set(owner, []slo.Definition{{Name: "tpot"}, {Name: "ttft"}})
	defer inprocess.SLOs.Remove(owner)
	h.Round(t.Context())
	require.Equal(t, []string{"tpto"}, h.abouts(unseenMessage))
	require.NoError(t, h.Shutdown(t.Context()))
}

func TestDoubts_ExplainTheOverflowSeries(t *testing.T) {
	h := newHarness(t, func(s *Settings) {
		s.Config.Series.MaxSeries = 2
		s.Engine = series.NewEngine(s.Config.EngineOptions())
	})
	for i := range 3 {
		require.Empty(t, h.abouts(overflowMessage))
		h.Record(t.Context(), spans(t, 1, map[string]any{"model": strconv.Itoa(i), "tokenpulse.outcome": "success"}))
	}
	require.Equal(t, []string{""}, h.abouts(overflowMessage))
	require.NoError(t, h.Shutdown(t.Context()))
}
