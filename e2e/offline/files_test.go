// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// One exporter writes a file of all spans, and the others rotated ones: 1 MB is the smallest limit.
const rotatesFiles = `
receivers:
  token_stream: {}
processors:
  token_latency: {timeline: keep}
exporters:
  token_sli: {}
  file/whole: {path: "${env:FOLDER}/whole.jsonl"}
  file/json: {path: "${env:FOLDER}/json/spans.jsonl", create_directory: true, rotation: {max_megabytes: 1}}
  file/proto: {path: "${env:FOLDER}/proto/spans.pb", format: proto, create_directory: true, rotation: {max_megabytes: 1}}
  file/json-zstd: {path: "${env:FOLDER}/json-zstd/spans", compression: zstd, create_directory: true, rotation: {max_megabytes: 1}}
  file/proto-zstd: {path: "${env:FOLDER}/proto-zstd/spans", format: proto, compression: zstd, create_directory: true, rotation: {max_megabytes: 1}}
service:
  pipelines:
    traces:
      receivers: [token_stream]
      processors: [token_latency]
      exporters: [token_sli, file/whole, file/json, file/proto, file/json-zstd, file/proto-zstd]
`

// Rotated files in each format, compressed by message or as a whole, have the requests of the file that was not rotated.
func TestReport_ReadsRotatedFilesOfEachFormat(t *testing.T) {
	t.Parallel()
	const requests = 2000
	for compression, gate := range map[string]string{"messages are compressed": "-", "files are compressed": "+"} {
		t.Run(compression, func(t *testing.T) {
			folder := t.TempDir()
			collector.Setenv(t, "FOLDER", folder)
			c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "config.yaml", rotatesFiles), collector.OwnMetricsOff, "--feature-gates="+gate+"exporter.file.nativeCompression")
			collector.Run(t, collector.Built(t, "tokenpulse"), "generate", "--fast", "--requests", strconv.Itoa(requests), "--seed", "1", "--endpoint", c.HTTP)
			c.Stop(t)

			whole := filepath.Join(folder, "whole.jsonl")
			expected := readReport(t, "report", whole, "--format", "json", "--strict")
			require.Equal(t, requests, expected.Input.Requests)
			for _, format := range []string{"json", "proto", "json-zstd", "proto-zstd"} {
				rotated := filepath.Join(folder, format)
				files, err := os.ReadDir(rotated)
				require.NoError(t, err)
				require.Greater(t, len(files), 1, "%s is rotated", format)
				got := readReport(t, "report", rotated, "--format", "json", "--strict")
				require.Equal(t, requests, got.Input.Requests, format)
				requireSame(t, expected.samples(), got.samples())
			}

			lines, err := os.ReadFile(whole)
			require.NoError(t, err)
			logs := rotateLog(t, lines)
			got := readReport(t, "report", logs, "--format", "json", "--strict")
			requireSame(t, expected.samples(), got.samples())
		})
	}
}

// rotateLog divides lines as logrotate does, and compresses all but the newest two.
func rotateLog(t *testing.T, lines []byte) (folder string) {
	t.Helper()
	folder = t.TempDir()
	names := []string{"spans.jsonl.10.gz", "spans.jsonl.9.gz", "spans.jsonl.1", "spans.jsonl"}
	for i, name := range names {
		part := lines
		if i < len(names)-1 {
			part = lines[:len(lines)/(len(names)-i)]
			part = part[:bytes.LastIndexByte(part, '\n')+1]
		}
		lines = lines[len(part):]
		if strings.HasSuffix(name, ".gz") {
			var zipped bytes.Buffer
			w := gzip.NewWriter(&zipped)
			_, err := w.Write(part)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			part = zipped.Bytes()
		}
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), part, 0o600))
	}
	return folder
}

const appendsToFile = `
receivers:
  token_stream: {}
processors:
  token_latency: {}
exporters:
  token_sli: {}
  file: {path: "${env:FOLDER}/spans.jsonl", append: true, flush_interval: 1h}
service:
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli, file]}
`

// A Collector that is killed leaves its last line without an end, and the next one appends to that line. Only the request of the
// cut line is lost, and a damaged line is counted.
func TestReport_ReadsTheFileOfAKilledCollector(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	collector.Setenv(t, "FOLDER", folder)
	file := filepath.Join(folder, "spans.jsonl")
	config := collector.WriteFile(t, t.TempDir(), "config.yaml", appendsToFile)
	send := func(c *collector.Collector, seed string) {
		collector.Run(t, collector.Built(t, "tokenpulse"), "generate", "--fast", "--requests", "100", "--seed", seed, "--endpoint", c.HTTP)
	}
	killed := collector.Start(t, config, collector.OwnMetricsOff)
	send(killed, "1")
	killed.Kill(t)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	if last := written[bytes.LastIndexByte(written, '\n')+1:]; len(last) == 0 || json.Valid(last) { // by chance
		written = written[:len(written)-10]
		require.NoError(t, os.Truncate(file, int64(len(written))))
	}
	spans := 0
	for line := range bytes.Lines(written[:bytes.LastIndexByte(written, '\n')+1]) {
		traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(line)
		require.NoError(t, err)
		spans += traces.SpanCount()
	}

	next := collector.Start(t, config, collector.OwnMetricsOff)
	send(next, "2")
	next.Stop(t)
	report, err := exec.CommandContext(t.Context(), collector.Built(t, "tokenpulse"), "report", file, "--format", "json").Output()
	require.NoError(t, err)
	var got struct {
		Input struct{ Requests, Damaged int }
	}
	require.NoError(t, json.Unmarshal(report, &got))
	require.Equal(t, spans+100, got.Input.Requests)
	require.Equal(t, 1, got.Input.Damaged)

	strict := exec.CommandContext(t.Context(), collector.Built(t, "tokenpulse"), "report", file, "--strict")
	problem, err := strict.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, strict.ProcessState.ExitCode())
	require.Contains(t, string(problem), fmt.Sprintf("%s:%d: the JSON document is incomplete", file, 1+bytes.Count(written, []byte("\n"))))
}

// Ctrl-C ends a report of a pipe that goes on, with what was read.
func TestReport_OfAPipeEndsWithCtrlC(t *testing.T) {
	t.Parallel()
	spans, err := os.ReadFile(collector.DemoRecording(t))
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), collector.Built(t, "tokenpulse"), "report", "-", "--format", "json")
	stdin, err := command.StdinPipe()
	require.NoError(t, err)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	require.NoError(t, command.Start())
	_, err = stdin.Write(spans) // returns after all but 64 KiB were read
	require.NoError(t, err)
	time.Sleep(time.Second)
	require.NoError(t, command.Process.Signal(syscall.SIGINT))
	require.Error(t, command.Wait())
	require.Equal(t, 130, command.ProcessState.ExitCode(), problems.String())
	var got struct {
		Partial bool
		Input   struct{ Requests int }
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &got), problems.String())
	require.True(t, got.Partial)
	require.Positive(t, got.Input.Requests)
}
