// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

var fromScratch = flag.Bool("from-scratch", false, "clone and build as docs/start-here.md says, in place of using this checkout")

// fiveMinutes is what the page promises for the build and one part.
const fiveMinutes = 5 * time.Minute

// The stand-in for an engine or a hosted model waits this long for its tokens.
const (
	standInTokens  = 5
	standInFirst   = 200 * time.Millisecond
	standInBetween = 40 * time.Millisecond
)

// Each part of the page ends at the right numbers. Its own commands run in an empty folder; only
// addresses are replaced.
func TestStartHere_EachPartEndsAtItsNumbers(t *testing.T) {
	t.Parallel()
	page := markdown.Read(t, "docs/start-here.md")
	folder := t.TempDir()
	began := time.Now()
	getTokenpulse(t, folder, commandsOf(t, page, "Build, once"))
	build := time.Since(began)

	for part, want := range map[string]struct {
		model           string
		first, perToken float64 // seconds
		slower          float64 // by how much the stand-in may be slower than its delays
	}{
		"I run engines":        {"my-model", standInFirst.Seconds(), standInBetween.Seconds(), 0.1},
		"I call hosted models": {"gpt-4o-mini", standInFirst.Seconds(), standInBetween.Seconds(), 0.1},
		"I operate Collectors": {"gpt-4o", 0.25, 0.5 / 20, 1e-9},
		"I write an SDK":       {"my-model", 0.25, 0.045 / 2, 1e-9},
	} {
		t.Run(part, func(t *testing.T) {
			began := time.Now()
			output := paste(t, filepath.Join(folder, "tokenpulse"), atFreeAddresses(t, commandsOf(t, page, part)))
			took := time.Since(began)
			for metric, seconds := range map[string]float64{
				"tokenpulse_time_to_first_token_seconds_sum": want.first, "tokenpulse_time_per_output_token_seconds_sum": want.perToken,
			} {
				lines := regexp.MustCompile(`(?m)^`+metric+`\{(.*)\} (\S+)$`).FindAllStringSubmatch(output, -1)
				require.Len(t, lines, 1, "%s in:\n%s", metric, output)
				require.Contains(t, lines[0][1], fmt.Sprintf(`gen_ai_request_model=%q`, want.model))
				got := promserver.Parsed(t, lines[0][2])
				require.GreaterOrEqual(t, got, seconds-1e-9, metric)
				require.LessOrEqual(t, got, seconds+want.slower, metric)
			}
			require.Less(t, build+took, fiveMinutes)
			t.Logf("%s: %.1f s to get tokenpulse, then %.1f s to the number", part, build.Seconds(), took.Seconds())
		})
	}
}

func TestStartHere_FilesNeedNoCollector(t *testing.T) {
	t.Parallel()
	page, folder := markdown.Read(t, "docs/start-here.md"), t.TempDir()
	getTokenpulse(t, folder, commandsOf(t, page, "Build, once"))
	output := paste(t, filepath.Join(folder, "tokenpulse"), commandsOf(t, page, "I have files"))
	require.Regexp(t, `my-model +chat +client +TTFT +1 +250ms +250ms`, output)
	require.Regexp(t, `my-model +chat +client +TPOT +1 +22.5ms +22.5ms`, output)
}

// commandsOf returns the only block of commands in a section.
func commandsOf(t *testing.T, page, section string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n## "+section+"\n")
	require.True(t, found, section)
	rest, _, _ = strings.Cut(rest, "\n## ")
	blocks := strings.Split(rest, "```sh\n")
	require.Len(t, blocks, 2, "%s: one block", section)
	commands, _, _ := strings.Cut(blocks[1], "```")
	return commands
}

// getTokenpulse makes the folder tokenpulse, with a Collector. The repository is not public yet, so
// the commands clone this checkout; by default, its files are linked and its Collector is used.
func getTokenpulse(t *testing.T, folder, commands string) {
	t.Helper()
	const clone, build = "git clone https://github.com/tokenpulse/tokenpulse\n", "make build\n"
	require.Equal(t, clone+"cd tokenpulse\n"+build, commands)
	root := testenv.Root(t)
	if *fromScratch {
		paste(t, folder, strings.Replace(commands, clone, fmt.Sprintf("git clone %q tokenpulse\n", root), 1))
		return
	}
	collector.Built(t, "otelcol-tokenpulse")
	checkout := filepath.Join(folder, "tokenpulse")
	require.NoError(t, os.Mkdir(checkout, 0o750))
	for _, name := range []string{"dist", "examples"} {
		require.NoError(t, os.Symlink(filepath.Join(root, name), filepath.Join(checkout, name)))
	}
}

// atFreeAddresses replaces the addresses of the page, among them those of the engine and of the hosted
// model by a stand-in.
func atFreeAddresses(t *testing.T, commands string) string {
	t.Helper()
	upstream := llmservice.Start(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, llmservice.ChatPath, r.URL.Path)
		pause := standInFirst
		for range standInTokens {
			time.Sleep(pause)
			llmservice.WriteChunks(w, 1)
			pause = standInBetween
		}
		_, _ = w.Write([]byte(llmservice.ChatEnd))
	}).URL
	metrics, otlp, tap := collector.FreeAddress(t), collector.FreeAddress(t), collector.FreeAddress(t)
	const program = "dist/otelcol-tokenpulse "
	require.Equal(t, 1, strings.Count(commands, program))
	settings := []string{collector.OwnMetricsOff, "--set=exporters.token_sli.endpoint=" + metrics}
	if strings.Contains(commands, "examples/tap.yaml") {
		settings = append(settings, "--set=receivers.token_tap.endpoint="+tap,
			fmt.Sprintf("'--set=receivers.token_tap.routes=[{prefix: /openai, upstream: {endpoint: %q}}]'", upstream))
	} else {
		settings = append(settings, "--set=receivers.otlp.protocols.http.endpoint="+otlp)
	}
	if strings.Contains(commands, "any-instrumentation.yaml") {
		settings = append(settings, "--set=receivers.otlp.protocols.grpc.endpoint="+collector.FreeAddress(t),
			"--set=receivers.token_stream.protocols.http.endpoint="+collector.FreeAddress(t), "--set=receivers.token_stream.protocols.grpc.endpoint="+collector.FreeAddress(t))
	}
	return strings.NewReplacer(program, program+strings.Join(settings, " ")+" ",
		"localhost:9464", metrics, "localhost:4318", otlp, "localhost:4321", tap, "http://localhost:8000", upstream).Replace(commands)
}

// paste runs commands in a folder, and returns what they print. A command that fails ends them.
func paste(t *testing.T, folder, commands string) string {
	t.Helper()
	collector.Setenv(t, "OPENAI_API_KEY", "none")
	shell := collector.StartProcess(t, testenv.Program(t, "bash"), "-euc", "cd '"+folder+"'\n"+commands)
	select {
	case <-shell.Exited:
	case <-time.After(fiveMinutes):
		t.Fatal("the commands do not end")
	}
	require.Equal(t, 0, shell.Command.ProcessState.ExitCode(), "%s\n%s", commands, shell.Output(t))
	return shell.Output(t)
}
