// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// call is a span in OTLP JSON: a call of model m whose first token came after 250 ms.
const call = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0102030405060708090a0b0c0d0e0f%02x","spanId":"0102030405060708","kind":3,
"startTimeUnixNano":"1795233292000000000","endTimeUnixNano":"1795233293000000000","attributes":[
{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"m"}},
{"key":"gen_ai.usage.output_tokens","value":{"intValue":"3"}},
{"key":"tokenpulse.chunk.offsets","value":{"arrayValue":{"values":[{"intValue":"250000"},{"intValue":"300000"},{"intValue":"350000"}]}}}]}]}]}]}`

// writeSpans writes a file with a line for each call, and after them other lines.
func writeSpans(t *testing.T, calls int, lines ...string) string {
	t.Helper()
	for i := range calls {
		lines = slices.Insert(lines, i, strings.ReplaceAll(fmt.Sprintf(call, i), "\n", ""))
	}
	path := filepath.Join(t.TempDir(), "spans.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

// execute runs tokenpulse as the process does, and returns its exit code.
func execute(ctx context.Context, args ...string) (code int, out, problems string) {
	command := newCommand()
	var stdout, stderr bytes.Buffer
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	command.SetArgs(args)
	code = exitCode(&stderr, command.ExecuteContext(ctx))
	return code, stdout.String(), stderr.String()
}

func TestReport_ShowsTheRequestsOfFiles(t *testing.T) {
	one, two := writeSpans(t, 3), writeSpans(t, 2) // two repeats requests of one
	slos := filepath.Join(t.TempDir(), "slos.yaml")
	require.NoError(t, os.WriteFile(slos, []byte("slos: [{name: fast, indicator: time_to_first_token, threshold: 200ms}]\nobjectives: [{slo: fast, objective: 0.99}]\n"), 0o600))
	code, out, problems := execute(t.Context(), "report", one, two, "--slos", slos, "--by", "gen_ai.request.model")
	require.Zero(t, code, problems)
	require.Contains(t, out, "3 requests in 2 files")
	require.Regexp(t, `m +client +TTFT +3 +250ms +250ms +250ms`, out)
	require.Regexp(t, `m +client +fast +0 +3 +0 +0.00% +99.00% +NO`, out)
	require.Contains(t, out, "2 requests read before, which count once")
}

func TestReport_SLOsOfTheCommandLineReplaceVerdictsOfACollector(t *testing.T) {
	judged := strings.Replace(fmt.Sprintf(call, 0), `"attributes":[`, `"attributes":[
{"key":"tokenpulse.slo.breached","value":{"arrayValue":{"values":[{"stringValue":"strict"}]}}},
{"key":"tokenpulse.slo.verdict.strict","value":{"stringValue":"breached"}},`, 1)
	spans := writeSpans(t, 0, strings.ReplaceAll(judged, "\n", ""))
	slos := filepath.Join(t.TempDir(), "slos.yaml")
	require.NoError(t, os.WriteFile(slos, []byte("slos: [{name: lenient, indicator: time_to_first_token, threshold: 300ms}]\n"), 0o600))

	_, out, _ := execute(t.Context(), "report", spans, "--by", "gen_ai.request.model")
	require.Regexp(t, `m +client +strict +0 +1 +0`, out)

	_, out, _ = execute(t.Context(), "report", spans, "--slos", slos, "--by", "gen_ai.request.model")
	require.NotContains(t, out, "strict")
	require.Regexp(t, `m +client +lenient +1 +0 +0`, out)
	require.Regexp(t, `m +client +all +1 +0 +0`, out)
	_, out, _ = execute(t.Context(), "slowest", spans, "--slos", slos)
	require.NotContains(t, out, "strict")
	_, out, _ = execute(t.Context(), "trace", "010203", spans, "--slos", slos)
	require.NotContains(t, out, "strict")
}

func TestReport_RequestsWithoutATimeDoNotLowerRates(t *testing.T) {
	line := func(id int, start, end string) string {
		return strings.NewReplacer("1795233292000000000", start, "1795233293000000000", end, "\n", "").Replace(fmt.Sprintf(call, id))
	}
	odd := []string{line(10, "0", "1000000000"), line(11, "9223372036854775808", "9223372037854775808"), line(12, "1795233292000000000", "0")}

	code, out, problems := execute(t.Context(), "report", writeSpans(t, 2, odd...), "--by", "gen_ai.request.model")
	require.Zero(t, code, problems)
	require.Contains(t, out, "5 requests in 1 file, 2026-11-21T03:54:52Z to 2026-11-21T03:54:53Z (1s)")
	require.Regexp(t, `m +client +5 +5 +- +15 +5.00 +15.00`, out)

	_, out, _ = execute(t.Context(), "report", writeSpans(t, 0, odd...))
	require.Contains(t, out, "3 requests in 1 file, at an unknown time")
}

func TestReport_JSONConformsToItsSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("report.schema.json")
	require.NoError(t, err)
	for _, path := range []string{writeSpans(t, 2), writeSpans(t, 0), writeSpans(t, 1, "damaged")} {
		code, out, problems := execute(t.Context(), "report", path, "--format", "json")
		require.Zero(t, code, problems)
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
		require.NoError(t, err)
		require.NoError(t, schema.Validate(document))
	}
}

func TestReport_DamagedLinesAreCountedOrEndIt(t *testing.T) {
	path := writeSpans(t, 2, `{"resourceSpans":[{"scopeSpans":`, strings.ReplaceAll(fmt.Sprintf(call, 9), "\n", ""))
	code, out, problems := execute(t.Context(), "report", path)
	require.Zero(t, code)
	require.Contains(t, problems, path+":3")
	require.Contains(t, out, "3 requests in 1 file")
	require.Contains(t, out, "1 damaged message left out")
	code, out, problems = execute(t.Context(), "report", path, "--strict")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, problems, path+":3")
}

// Many damaged lines do not fill a terminal.
func TestReport_NamesTheFirstDamagedLines(t *testing.T) {
	code, out, problems := execute(t.Context(), "report", writeSpans(t, 1, slices.Repeat([]string{`{"resourceSpans":1}`}, 1000)...))
	require.Zero(t, code)
	require.Equal(t, 5, strings.Count(problems, "damaged"))
	require.Contains(t, out, "1000 damaged messages left out")
}

// Ctrl-C shows what was read, and a script sees that it is a part.
func TestReport_InterruptedSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := writeSpans(t, 3)
	code, out, _ := execute(ctx, "report", path)
	require.Equal(t, 130, code)
	require.Contains(t, out, "PART of the files")
	code, out, _ = execute(ctx, "report", path, "--format", "json")
	require.Equal(t, 130, code)
	var r struct{ Partial bool }
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.True(t, r.Partial)
}

func TestReport_MistakesOfTheCommandLineExitWith64(t *testing.T) {
	path, settings := writeSpans(t, 1), filepath.Join(t.TempDir(), "slos.yaml")
	require.NoError(t, os.WriteFile(settings, []byte("slos: [{name: fast, indicator: ttft, threshold: 200ms}]\n"), 0o600))
	for expected, args := range map[string][]string{
		"requires at least 1 arg":               {"report"},
		"unknown flag: --formt":                 {"report", path, "--formt", "json"},
		`--format is "xml"; valid values:`:      {"report", path, "--format", "xml"},
		"slos::0":                               {"report", path, "--slos", settings},
		"no such file":                          {"report", path, "--config", "missing.yaml"},
		`unknown command "repot"`:               {"repot"},
		"--by: ":                                {"report", path, "--by", ","},
		"`dimensions` has both \"m\" and \"m\"": {"report", path, "--by", "m,m"},
		"given twice; standard input can be":    {"report", "-", "-"},
		"stat missing.jsonl: no such file or":   {"report", "missing.jsonl"},
	} {
		code, out, problems := execute(t.Context(), args...)
		require.Contains(t, problems, expected)
		require.Equal(t, 64, code, problems)
		require.Empty(t, out)
	}
}

func TestReport_AFileOfAnotherKindIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(path, []byte("<!DOCTYPE html><html></html>"), 0o600))
	code, _, problems := execute(t.Context(), "report", path)
	require.Equal(t, 1, code)
	require.Contains(t, problems, path)
	require.Contains(t, problems, "HTML")
}

// A folder of results holds other files, too. One that is named must be of a kind that can be read.
func TestReport_FilesOfOtherKindsInFoldersAreLeftOut(t *testing.T) {
	path := writeSpans(t, 2)
	folder := filepath.Dir(path)
	readme := filepath.Join(folder, "README.md")
	require.NoError(t, os.WriteFile(readme, []byte("# Results\n"), 0o600))
	code, out, problems := execute(t.Context(), "report", folder)
	require.Zero(t, code, problems)
	require.Contains(t, out, "2 requests in 1 file")
	require.Contains(t, out, "left out of the folder: "+readme)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "numbers.csv"), []byte("a,b\n1,2\n"), 0o600))
	_, out, _ = execute(t.Context(), "report", folder)
	require.Contains(t, out, "left out of the folders: 2 files of other kinds, such as "+readme)
	for _, args := range [][]string{{"report", folder, "--strict"}, {"report", path, readme}} {
		code, out, problems = execute(t.Context(), args...)
		require.Equal(t, 1, code)
		require.Empty(t, out)
		require.Contains(t, problems, readme)
	}
	require.NoError(t, os.Remove(path))
	code, _, problems = execute(t.Context(), "report", folder)
	require.Equal(t, 1, code, "a folder without a file that can be read")
	require.Contains(t, problems, readme)
}

// A typing error in --by must not look like an attribute that all requests share.
func TestReport_AnAttributeThatNoRequestHasIsNamed(t *testing.T) {
	_, out, _ := execute(t.Context(), "report", writeSpans(t, 1), "--by", "gen_ai.request.modle")
	require.Contains(t, out, "no request has the attribute gen_ai.request.modle")
	require.Regexp(t, `client +1 +1 +- +3 `, out, "input tokens are not reported")
}

func TestReport_ReadsStandardInput(t *testing.T) {
	spans, err := os.Open(writeSpans(t, 2))
	require.NoError(t, err)
	defer spans.Close()
	stdin := os.Stdin
	os.Stdin = spans
	defer func() { os.Stdin = stdin }()
	code, out, problems := execute(t.Context(), "report", "-")
	require.Zero(t, code, problems)
	require.Contains(t, out, "2 requests in 1 file")
}

// Each command shows an example, in the man pages, too.
func TestHelp_EachCommandHasAnExample(t *testing.T) {
	folder := t.TempDir()
	code, _, problems := execute(t.Context(), "man", folder)
	require.Zero(t, code, problems)
	var check func(*cobra.Command)
	check = func(command *cobra.Command) {
		if command.IsAvailableCommand() && !command.HasSubCommands() {
			require.Contains(t, command.Example, "tokenpulse "+command.Name(), command.Name())
			page, err := os.ReadFile(filepath.Join(folder, strings.ReplaceAll(command.CommandPath(), " ", "-")+".1"))
			require.NoError(t, err)
			require.Contains(t, string(page), ".SH EXAMPLE")
		}
		for _, each := range command.Commands() {
			check(each)
		}
	}
	check(newCommand())
}

func TestTraffic_MistakesOfTheCommandLineExitWith64(t *testing.T) {
	for expected, args := range map[string][]string{
		"--transport is \"smoke\"": {"replay", demo, "--transport", "smoke"},
		"--speed is \"slow\"":      {"replay", demo, "--speed", "slow"},
		"--window is 1s":           {"watch", "--window", "1s"},
		"needs a limit":            {"generate", "--output", filepath.Join(t.TempDir(), "o.jsonl")},
		"exclude each other":       {"generate", "--rate", "3", "--concurrency", "2"},
		"--attribute":              {"generate", "--attribute", "tenant"},
	} {
		code, _, problems := execute(t.Context(), args...)
		require.Equal(t, 64, code, problems)
		require.Contains(t, problems, expected)
	}
}
