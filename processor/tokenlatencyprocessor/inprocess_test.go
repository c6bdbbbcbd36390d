// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

func TestInProcess_ReportsSLOsFromStartToShutdown(t *testing.T) {
	const name = "of this test only"
	definition := slo.Definition{Name: name, Indicator: "time_per_output_token", Threshold: 0.03}
	reported := func() (found []slo.Definition) {
		for _, definitions := range inprocess.SLOs.All() {
			for _, d := range definitions {
				if d.Name == name {
					found = append(found, d)
				}
			}
		}
		return found
	}
	cfg := annotate.DefaultConfig()
	cfg.SLOs = []judge.SLOConfig{{Name: name, Indicator: "time_per_output_token", Threshold: "30ms"}}
	create := func() processor.Traces {
		p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(NewFactory().Type()), cfg, consumertest.NewNop())
		require.NoError(t, err)
		return p
	}
	one, two := create(), create() // the same processor in two pipelines
	require.Empty(t, reported())
	require.NoError(t, one.Start(t.Context(), componenttest.NewNopHost()))
	require.Equal(t, []slo.Definition{definition}, reported())
	require.NoError(t, two.Start(t.Context(), componenttest.NewNopHost()))
	require.Equal(t, []slo.Definition{definition, definition}, reported())
	require.NoError(t, one.Shutdown(t.Context()))
	require.Equal(t, []slo.Definition{definition}, reported())
	require.NoError(t, two.Shutdown(t.Context()))
	require.Empty(t, reported())
}
