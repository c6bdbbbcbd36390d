// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sloexport

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/config"
)

const root = "../../../.."

// export writes the SLOs of a file in a format.
func export(t *testing.T, format, text string) (Export, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slos.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	settings, err := config.Load(t.Context(), file)
	require.NoError(t, err)
	return To(format, settings)
}

func requireExport(t *testing.T, format, text string) Export {
	t.Helper()
	e, err := export(t, format, text)
	require.NoError(t, err)
	return e
}

// documents decodes the documents of a YAML stream.
func documents(t *testing.T, text []byte) (all []map[string]any) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var one map[string]any
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, one)
	}
}

// at returns the value at a path of keys and indexes, such as spec.slos.0.name.
func at(t *testing.T, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			require.Contains(t, value, step)
			value = value.(map[string]any)[step]
		case int:
			value = value.([]any)[step]
		}
	}
	return value
}

func TestTo_RejectsUnknownFormat(t *testing.T) {
	_, err := export(t, "nagios", "objectives: [{slo: all, objective: 0.9}]")
	require.EqualError(t, err, `unknown format "nagios"; valid formats: prometheus, pyrra, sloth, openslo`)
}

func TestTo_FailsWithoutObjectives(t *testing.T) {
	_, err := export(t, "sloth", "slos: [{name: a, indicator: outcome}]")
	require.ErrorContains(t, err, "no SLO has an objective; add `objectives` of token_sli to the file")
}

func TestTo_NotesSLOsWithoutObjectiveAndObjectivesWithoutSLO(t *testing.T) {
	const text = "{slos: [{name: a, indicator: outcome}, {name: b, indicator: outcome}], objectives: [{slo: all, objective: 0.95}, {slo: c, objective: 0.95}]}"
	for _, format := range Formats() {
		notes := strings.Join(requireExport(t, format, text).Notes, "\n")
		require.Contains(t, notes, "without an objective, and so left out: a, b; add entries such as {slo: \"a\", objective: 0.95}", format)
		require.Contains(t, notes, "objective of SLO \"c\", which `slos` does not define", format)
	}
	// A gateway has objectives of SLOs that other Collectors define.
	require.Empty(t, requireExport(t, "prometheus", "objectives: [{slo: c, objective: 0.95}]").Notes)
}

func TestTo_NotesThatTheCounterIsOff(t *testing.T) {
	e := requireExport(t, "prometheus", "{metrics: {tokenpulse.slo.requests: {enabled: false}}, objectives: [{slo: all, objective: 0.95}]}")
	require.Equal(t, []string{"`metrics` switches tokenpulse.slo.requests off, so there is nothing to alert on; remove that entry"}, e.Notes)
}

// The table of the documentation is generated from what the exporter serves.
func TestCounter_HasTheNameOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/metrics.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "| `tokenpulse.slo.requests` | `"+counterOf(nil).metric+"` | `slo`, `verdict` |")
}

func TestCounter_GroupsAsTheRulesDo(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join(root, "examples/prometheus/rules.yaml"))
	require.NoError(t, err)
	c := counterOf([]string{"service.name", "gen_ai.provider.name", "gen_ai.request.model"})
	require.Contains(t, string(rules), "- record: tokenpulse_slo:requests:5m\n        expr: sum by ("+
		strings.Join(append([]string{"job", "slo"}, c.grouping[1:]...), ", ")+") (increase("+c.metric)
	require.Equal(t, []string{"job", "vantage"}, counterOf([]string{"tenant.id"}).grouping, "labels that the series lack")
}

func TestDescribe_SaysWhatIsGood(t *testing.T) {
	e := requireExport(t, "openslo", `
slos:
  - {name: a, indicator: time_to_first_token, threshold: 250ms, threshold_attribute: limit, match: {m: x, k: y}, match_regexp: {r: 'a|b'}, match_range: {n: {min: 1, max: 5}}}
  - {name: b, indicator: outcome, client_errors: bad}
  - {name: c, indicator: stall.count, threshold: 2}
objectives: [{slo: a, objective: 0.9}, {slo: b, objective: 0.9}, {slo: c, objective: 0.9}, {slo: all, objective: 0.9}]
`)
	var descriptions []any
	for _, one := range documents(t, e.Text) {
		descriptions = append(descriptions, at(t, one, "spec", "description"))
	}
	require.Equal(t, []any{
		"time_to_first_token at most 250ms, or limit if the request has it, where k is y and m is x and r matches a|b and n is at least 1 and below 5",
		"outcome success, client errors bad",
		"stall.count at most 2",
		"every SLO that applies to a request, and its outcome",
	}, descriptions)
}

func TestPercent_HasNoErrorOfMultiplication(t *testing.T) {
	for share, text := range map[float64]string{0.57: "57", 0.999: "99.9", 0.95: "95", 0.99995: "99.995", 0.29: "29", 0.9999999: "99.99999"} {
		require.Equal(t, text, percentText(share))
	}
}
