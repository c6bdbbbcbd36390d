// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slotools

import (
	"bytes"
	"testing"

	"github.com/OpenSLO/oslo/pkg/manifest/v1"
	"github.com/OpenSLO/oslo/pkg/validate"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestOpenSLO_IsValid(t *testing.T) {
	for _, window := range []string{"720h", "36h", "90m"} {
		require.NoError(t, validate.Files([]string{slos(t, "openslo", window, valid, strange, long)}))
	}
}

func TestOpenSLO_QueriesSelectTheirSLO(t *testing.T) {
	decoder := yaml.NewDecoder(bytes.NewReader(read(t, slos(t, "openslo", "720h", valid, strange, long))))
	for _, slo := range []string{valid, strange, long} {
		var object v1.SLO
		require.NoError(t, decoder.Decode(&object))
		ratio := object.Spec.Indicator.Spec.RatioMetric
		require.True(t, ratio.Counter)
		for query, verdicts := range map[string][]string{
			ratio.Good.MetricSource.MetricSourceSpec["query"]:  {"good"},
			ratio.Total.MetricSource.MetricSourceSpec["query"]: {"good", "bad"},
		} {
			sum, ok := parse(t, query).(*parser.AggregateExpr)
			require.True(t, ok)
			requireSelects(t, sum.Expr, slo, verdicts...)
		}
	}
}
