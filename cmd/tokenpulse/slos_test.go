// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What another program reads has no notes in it.
func TestSLOs_WritesObjectsToOutputAndNotesToErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slos.yaml")
	require.NoError(t, os.WriteFile(file, []byte("{slos: [{name: Fast, indicator: outcome}], objectives: [{slo: Fast, objective: 0.99}]}"), 0o600))
	var out, errs bytes.Buffer
	command := newCommand()
	command.SetOut(&out)
	command.SetErr(&errs)
	command.SetArgs([]string{"slos", file, "--to", "openslo"})
	require.NoError(t, command.ExecuteContext(t.Context()))
	require.True(t, strings.HasPrefix(out.String(), "apiVersion: openslo/v1\n"))
	require.NotContains(t, out.String(), "note")
	require.Contains(t, errs.String(), "tokenpulse: note: Kubernetes allows names of up to 63 lower-case letters, digits and hyphens, so objects have others than their SLOs: \"Fast\" is fast\n")

	to := filepath.Join(t.TempDir(), "slo.yaml")
	printed := out.String()
	out.Reset()
	command.SetArgs([]string{"slos", file, "--to", "openslo", "-o", to})
	require.NoError(t, command.ExecuteContext(t.Context()))
	require.Empty(t, out.String())
	written, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, printed, string(written))
}

func TestSLOs_ReportsMistakes(t *testing.T) {
	for message, args := range map[string][]string{
		`required flag(s) "to" not set`: {"slos", "x.yaml"},
		"accepts 1 arg(s)":              {"slos", "--to", "sloth"},
		"x.yaml: no such file":          {"slos", "x.yaml", "--to", "sloth"},
		`unknown format "slot"`:         {"slos", "../../examples/quickstart.yaml", "--to", "slot"},
	} {
		_, err := run(t.Context(), args...)
		require.ErrorContains(t, err, message)
	}
}

func TestSLOs_ReadsAPresetOfTheExamples(t *testing.T) {
	out, err := run(t.Context(), "slos", "../../examples/slo/presets.yaml#mlperf_server", "--to", "sloth")
	require.NoError(t, err)
	require.Equal(t, 13, strings.Count(out, "    - name: "))
}
