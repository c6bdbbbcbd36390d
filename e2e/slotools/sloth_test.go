// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slotools

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	slothv1 "github.com/slok/sloth/pkg/kubernetes/api/sloth/v1"
	sloth "github.com/slok/sloth/pkg/lib"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// slothRules returns the file of the rules that Sloth makes of a PrometheusServiceLevel.
func slothRules(t *testing.T, object []byte, period time.Duration, windows fs.FS) string {
	t.Helper()
	generator, err := sloth.NewPrometheusSLOGenerator(sloth.PrometheusSLOGeneratorConfig{DefaultSLOPeriod: period, WindowsFS: windows})
	require.NoError(t, err)
	result, err := generator.GenerateFromRaw(t.Context(), object)
	require.NoError(t, err)
	var rules bytes.Buffer
	require.NoError(t, generator.WriteResultAsPrometheusStd(t.Context(), *result, &rules))
	return write(t, "rules.yaml", rules.String())
}

func TestSloth_DecodesEachFieldStrictly(t *testing.T) {
	var object slothv1.PrometheusServiceLevel
	require.NoError(t, yaml.UnmarshalStrict(read(t, slos(t, "sloth", "720h", valid, strange, long)), &object))
	require.Len(t, object.Spec.SLOs, 3)
}

func TestSloth_RulesAlertOnABreachAndOnNothingElse(t *testing.T) {
	object := read(t, slos(t, "sloth", "720h", valid, strange, long))
	var decoded slothv1.PrometheusServiceLevel
	require.NoError(t, yaml.Unmarshal(object, &decoded))
	names := map[string]string{}
	for i, slo := range []string{valid, strange, long} {
		names[slo] = decoded.Spec.SLOs[i].Name
	}
	requireAlerts(t, slothRules(t, object, 30*24*time.Hour, nil), "sloth_slo", names)
}

// Sloth knows no windows of 7 days by itself. The note of `tokenpulse slos` says what it needs.
func TestSloth_RulesOfAnotherWindowAlertOnABreach(t *testing.T) {
	week := fstest.MapFS{"week.yaml": {Data: []byte(strings.TrimSpace(`
apiVersion: sloth.slok.dev/v1
kind: AlertWindows
spec:
  sloPeriod: 7d
  page:
    quick: {errorBudgetPercent: 8, shortWindow: 5m, longWindow: 1h}
    slow: {errorBudgetPercent: 12.5, shortWindow: 30m, longWindow: 6h}
  ticket:
    quick: {errorBudgetPercent: 20, shortWindow: 2h, longWindow: 1d}
    slow: {errorBudgetPercent: 42, shortWindow: 6h, longWindow: 3d}
`))}}
	requireAlerts(t, slothRules(t, read(t, slos(t, "sloth", "168h", valid)), 7*24*time.Hour, week), "sloth_slo", map[string]string{valid: valid})
}
