// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// withBudget adds an objective, and keeps its error budget across restarts.
func withBudget(c *Config) {
	c.Shared.Objectives = []keeper.Objective{{SLO: "tpot", Objective: 0.9, Window: 720 * time.Hour}}
	c.Shared.StorageID = &storagetest.FileStorage
}

func breachedTraces(t *testing.T) ptrace.Traces {
	t.Helper()
	traces := ptrace.NewTraces()
	span := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	require.NoError(t, span.Attributes().FromRaw(map[string]any{"tokenpulse.slo.breached": []any{"tpot"}}))
	return traces
}

// sloLines scrapes the rest of the budget and the number of bad requests, if the series
// is exported.
func (h *harness) sloLines(t *testing.T) (lines []string) {
	t.Helper()
	_, body := h.get(t, metricsPath)
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "tokenpulse_slo_error_budget") || strings.HasPrefix(line, "tokenpulse_slo_requests_total") && strings.Contains(line, `slo="tpot",verdict="bad"`) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// After a restart the budget continues, and the counters start at zero.
func TestStart_RestoresBudgetsAndSeries(t *testing.T) {
	host := storagetest.NewHost(t)
	first := startOn(t, host, withBudget)
	require.NoError(t, first.exporter.ConsumeTraces(t.Context(), breachedTraces(t)))
	budget := `tokenpulse_slo_error_budget_remaining{slo="tpot"} -9`
	before := first.sloLines(t)
	require.Len(t, before, 2)
	require.True(t, strings.HasPrefix(before[0], budget), before[0])
	require.Equal(t, `tokenpulse_slo_requests_total{slo="tpot",verdict="bad"} 1`, before[1])
	require.NoError(t, first.exporter.Shutdown(t.Context()))

	second := startOn(t, host, withBudget)
	require.Equal(t, []string{before[0], `tokenpulse_slo_requests_total{slo="tpot",verdict="bad"} 0`}, second.sloLines(t))
}

func TestRounds_ExpireSeries(t *testing.T) {
	t.Parallel()
	first := startOn(t, storagetest.NewHost(t), func(c *Config) { withBudget(c); c.Shared.Series.SeriesExpiration = 5 * time.Second })
	require.NoError(t, first.exporter.ConsumeTraces(t.Context(), breachedTraces(t)))
	require.Eventually(t, func() bool { return len(first.sloLines(t)) == 0 }, time.Minute, 50*time.Millisecond, "the series expires")
	require.NoError(t, first.exporter.ConsumeTraces(t.Context(), breachedTraces(t)))
	lines := first.sloLines(t)
	require.Len(t, lines, 2)
	require.Contains(t, lines[1], " 1", "the new series counts from zero")
}

func TestRoundInterval_IsAQuarterOfTheExpiration(t *testing.T) {
	require.Equal(t, 250*time.Millisecond, roundInterval(time.Second))
	require.Equal(t, 5*time.Second, roundInterval(time.Hour))
	require.Equal(t, 5*time.Second, roundInterval(0))
}

func TestStart_FailsWithoutTheStorageExtension(t *testing.T) {
	missing := component.MustNewID("file_storage")
	e, _ := unstarted(t, func(c *Config) { c.Shared.StorageID = &missing })
	require.ErrorContains(t, e.Start(t.Context(), componenttest.NewNopHost()), "`storage` is \"file_storage\", which is not an extension of this Collector")
	require.NoError(t, e.Shutdown(t.Context()))
}
