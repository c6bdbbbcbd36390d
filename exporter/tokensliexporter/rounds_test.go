// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// newExporter returns an exporter with an objective and the URL of its metrics. It is not
// started.
func newExporter(t *testing.T, change func(*Config)) (exporter.Traces, string) {
	t.Helper()
	config := createDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint = freeAddress(t)
	config.Shared.Objectives = []keeper.Objective{{SLO: "tpot", Objective: 0.9, Window: 720 * time.Hour}}
	change(config)
	settings := exportertest.NewNopSettings(metadata.Type)
	settings.ID = component.NewID(metadata.Type) // budgets are stored under it
	e, err := createTraces(t.Context(), settings, config)
	require.NoError(t, err)
	return e, "http://" + config.Server.NetAddr.Endpoint + metricsPath
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
func sloLines(t *testing.T, url string) (lines []string) {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "tokenpulse_slo_error_budget") || strings.HasPrefix(line, "tokenpulse_slo_requests_total") && strings.Contains(line, `slo="tpot",verdict="bad"`) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// After a restart the budget continues, and the counters start at zero.
func TestStart_RestoresBudgetsAndSeries(t *testing.T) {
	host, id := storagetest.NewHost(t), storagetest.FileStorage
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	first, url := newExporter(t, func(c *Config) { c.Shared.StorageID = &id })
	require.NoError(t, first.Start(t.Context(), host))
	require.NoError(t, first.ConsumeTraces(t.Context(), breachedTraces(t)))
	budget := `tokenpulse_slo_error_budget_remaining{slo="tpot"} -9`
	before := sloLines(t, url)
	require.Len(t, before, 2)
	require.True(t, strings.HasPrefix(before[0], budget), before[0])
	require.Equal(t, `tokenpulse_slo_requests_total{slo="tpot",verdict="bad"} 1`, before[1])
	require.NoError(t, first.Shutdown(t.Context()))

	second, url := newExporter(t, func(c *Config) { c.Shared.StorageID = &id })
	require.NoError(t, second.Start(t.Context(), host))
	require.Equal(t, []string{before[0], `tokenpulse_slo_requests_total{slo="tpot",verdict="bad"} 0`}, sloLines(t, url))
	require.NoError(t, second.Shutdown(t.Context()))
}

func TestRounds_ExpireSeries(t *testing.T) {
	host, id := storagetest.NewHost(t), storagetest.FileStorage
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	short := func(c *Config) { c.Shared.StorageID = &id; c.Shared.Series.SeriesExpiration = 5 * time.Second }
	first, url := newExporter(t, short)
	require.NoError(t, first.Start(t.Context(), host))
	require.NoError(t, first.ConsumeTraces(t.Context(), breachedTraces(t)))
	require.Eventually(t, func() bool { return len(sloLines(t, url)) == 0 }, time.Minute, 50*time.Millisecond, "the series expires")
	require.NoError(t, first.ConsumeTraces(t.Context(), breachedTraces(t)))
	lines := sloLines(t, url)
	require.Len(t, lines, 2)
	require.Contains(t, lines[1], " 1", "the new series counts from zero")
	require.NoError(t, first.Shutdown(t.Context()))
}

func TestRoundInterval_IsAQuarterOfTheExpiration(t *testing.T) {
	require.Equal(t, 250*time.Millisecond, roundInterval(time.Second))
	require.Equal(t, 5*time.Second, roundInterval(time.Hour))
	require.Equal(t, 5*time.Second, roundInterval(0))
}

func TestStart_FailsWithoutTheStorageExtension(t *testing.T) {
	missing := component.MustNewID("file_storage")
	e, _ := newExporter(t, func(c *Config) { c.Shared.StorageID = &missing })
	require.ErrorContains(t, e.Start(t.Context(), componenttest.NewNopHost()), "`storage` is \"file_storage\", which is not an extension of this Collector")
	require.NoError(t, e.Shutdown(t.Context()))
}
