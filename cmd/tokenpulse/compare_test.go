// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// generated writes token events of so many requests.
func generated(t *testing.T, seed, requests int, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	args := []string{"generate", "--output", path, "--rate", "20", "--seed", strconv.Itoa(seed), "--requests", strconv.Itoa(requests)}
	code, _, problems := execute(t.Context(), append(args, more...)...)
	require.Zero(t, code, problems)
	return path
}

// reported writes the report of a file, which is read once, however often it is compared.
func reported(t *testing.T, slos, path string) string {
	t.Helper()
	code, text, problems := execute(t.Context(), "report", path, "--format", "json", "--slos", slos)
	require.Zero(t, code, problems)
	saved := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(saved, []byte(text), 0o600))
	return saved
}

// slosOf writes a file with one SLO on time per output token.
func slosOf(t *testing.T, threshold string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slos.yaml")
	require.NoError(t, os.WriteFile(path, []byte("slos: [{name: tpot, indicator: time_per_output_token, threshold: "+threshold+"}]\n"), 0o600))
	return path
}

func TestCompare_ExitCodesAreVerdicts(t *testing.T) {
	slos := slosOf(t, "30ms")
	baseline := reported(t, slos, generated(t, 1, 500, "--model", "m"))
	alike := reported(t, slos, generated(t, 2, 500, "--model", "m"))
	slower := reported(t, slos, generated(t, 3, 500, "--model", "m=0.7"))
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"alike":                  {[]string{baseline, alike, "--tolerance", "0.5"}, 0, "EQUIVALENT: "},
		"slower":                 {[]string{baseline, slower, "--tolerance", "0.1"}, 1, "WORSE: "},
		"faster":                 {[]string{slower, baseline, "--tolerance", "0.1"}, 0, "BETTER: "},
		"by an SLO":              {[]string{baseline, slower, "--slos", slos, "--slo", "tpot"}, 1, "WORSE: "},
		"by all SLOs":            {[]string{baseline, slower, "--slos", slos, "--slo", "all", "--tolerance", "0.1"}, 1, "WORSE: "},
		"within a wide one":      {[]string{baseline, slower, "--tolerance", "2"}, 0, "EQUIVALENT: "},
		"too few":                {[]string{baseline, generated(t, 4, 100)}, 2, "200"},
		"the same file":          {[]string{baseline, baseline}, 2, "same requests"},
		"another indicator":      {[]string{baseline, slower, "--indicator", "request_duration"}, 1, "request_duration"},
		"unknown indicator":      {[]string{baseline, alike, "--indicator", "ttft"}, 64, "valid values: time_to_first_token"},
		"unknown format":         {[]string{baseline, alike, "--format", "html"}, 64, "valid values: table, json"},
		"one file":               {[]string{baseline}, 64, "accepts 2 arg(s)"},
		"a tolerance too small":  {[]string{baseline, alike, "--tolerance", "0.001"}, 64, "tolerance is 0.001"},
		"an SLO that is unknown": {[]string{baseline, alike, "--slo", "tpto"}, 64, "tpto"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, problems := execute(t.Context(), append([]string{"compare"}, c.args...)...)
			require.Equal(t, c.code, code, out+problems)
			require.Contains(t, out+problems, c.says)
		})
	}
}

// A baseline that one keeps gives the verdict and the numbers of the files that it was made of.
func TestCompare_ASavedReportIsAsGoodAsItsFiles(t *testing.T) {
	baseline, candidate, slos := generated(t, 1, 400, "--model", "m"), generated(t, 2, 400, "--model", "m=0.8"), slosOf(t, "25ms")
	saved := reported(t, slos, baseline)
	flags := []string{"--slos", slos, "--slo", "all", "--indicator", "time_to_first_token", "--format", "json"}
	ofFiles, fromFiles, _ := execute(t.Context(), append([]string{"compare", baseline, candidate}, flags...)...)
	ofReport, fromReport, problems := execute(t.Context(), append([]string{"compare", saved, candidate}, flags...)...)
	require.Equal(t, ofFiles, ofReport, problems)
	require.JSONEq(t, fromFiles, fromReport)
	var result struct{ Verdict string }
	require.NoError(t, json.Unmarshal([]byte(fromReport), &result))
	require.Equal(t, "worse", result.Verdict)

	// The baseline was judged by another threshold, of other requests, or by none.
	for _, slos := range []string{slosOf(t, "20ms"), slosOf(t, "25001us"), slosOf(t, "25ms, match: {gen_ai.request.model: m}")} {
		code, _, problems := execute(t.Context(), "compare", saved, candidate, "--slos", slos, "--slo", "all")
		require.Equal(t, 64, code)
		require.Contains(t, problems, `the SLO "tpot" is not the same on both sides`)
	}
	code, _, problems := execute(t.Context(), "compare", saved, candidate, "--slo", "tpot")
	require.Equal(t, 64, code)
	require.Contains(t, problems, "tpot")
}

func TestCompare_ReportsThatCannotBeComparedSayWhy(t *testing.T) {
	candidate := writeSpans(t, 3)
	for text, expected := range map[string]string{
		`{"tokenpulse_report": 2, "arms": {}}`:                  "version 2",
		`{"tokenpulse_report": 1, "partial": true, "arms": {}}`: "a part of some files",
		`{"tokenpulse_report": 1}`:                              "has no `arms`",
		`{"tokenpulse_report": 1, "arms": {"moon": null}}`:      `unknown vantage "moon"`,
		`{"tokenpulse_report": 1, "arms"`:                       "unexpected EOF",
	} {
		path := filepath.Join(t.TempDir(), "report.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		code, _, problems := execute(t.Context(), "compare", path, candidate)
		require.Equal(t, 1, code)
		require.Contains(t, problems, path)
		require.Contains(t, problems, expected)
	}
}

func TestCompare_ARowWithoutValuesHasNone(t *testing.T) {
	code, out, _ := execute(t.Context(), "compare", generated(t, 1, 250), generated(t, 2, 210, "--one-token-ratio", "0.3"), "--indicator", "time_per_output_token")
	require.Equal(t, exitUndecided, code)
	require.Regexp(t, `(?m)^time_per_output_token p50 +- +- +- +0\.00 +- +undecided$`, out)
	require.Regexp(t, `UNDECIDED: p50 of time_per_output_token: \d+ and \d+ requests have one; 200 in each arm are needed`, out)
}

// What a client saw cannot be compared with what an engine saw.
func TestCompare_DifferentVantagesAreRefused(t *testing.T) {
	code, _, problems := execute(t.Context(), "compare", writeSpans(t, 3), generated(t, 1, 300))
	require.Equal(t, 1, code)
	require.Contains(t, problems, "no vantage saw requests of both: the baseline's are of client, the candidate's of server")
}
