// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the built Collector as a process, with real clients. Run
// `make build` first.
package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

const patience = 30 * time.Second

// process is a running program. It is stopped when the test ends.
type process struct {
	command *exec.Cmd
	log     string
	exited  chan struct{}
}

func start(t *testing.T, path string, args ...string) *process {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), filepath.Base(path)+"-*.log")
	require.NoError(t, err)
	p := &process{command: exec.Command(path, args...), log: log.Name(), exited: make(chan struct{})}
	p.command.Env, p.command.Stdout, p.command.Stderr = environ(t), log, log
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, p.command.Start())
	go func() {
		_ = p.command.Wait()
		_ = log.Close()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("%s wrote:\n%s", filepath.Base(path), p.output(t))
		}
	})
	return p
}

// signal signals the process and its children, as Ctrl-C in a terminal does.
func (p *process) signal(signal syscall.Signal) {
	_ = syscall.Kill(-p.command.Process.Pid, signal)
}

// stop sends SIGTERM, as an init system does, and waits until the process has exited.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.signal(syscall.SIGKILL)
		<-p.exited
		t.Errorf("%s did not stop after SIGTERM", p.command.Path)
	}
}

func (p *process) output(t *testing.T) string {
	t.Helper()
	written, err := os.ReadFile(p.log)
	require.NoError(t, err)
	return string(written)
}

// waitFor requests a URL until the answer is 200.
func (p *process) waitFor(t *testing.T, url string) {
	t.Helper()
	require.Eventually(t, func() bool {
		select {
		case <-p.exited:
			t.Fatalf("%s exited early:\n%s", p.command.Path, p.output(t))
		default:
		}
		response, err := http.Get(url)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, patience, 50*time.Millisecond, "%s does not answer with 200", url)
}

// waitUntilReady waits until all parts of a Collector have started. Exporters start first, so
// that /metrics answers before a receiver listens.
func (p *process) waitUntilReady(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(p.output(t), "Everything is ready")
	}, patience, 10*time.Millisecond, "%s does not get ready", p.command.Path)
}

func built(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(testenv.Root(t), "dist", name)
	require.FileExists(t, path, "run make dist/%s first", name)
	return path
}

var otherCollector = flag.String("collector", "", "the Collector to test, in place of dist/otelcol-tokenpulse")

// underTest returns the path of the Collector to test.
func underTest(t *testing.T) string {
	if *otherCollector != "" {
		return *otherCollector
	}
	return built(t, "otelcol-tokenpulse")
}

func run(t *testing.T, path string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, path, args...)
	command.Env = environ(t)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s %v:\n%s", path, args, output)
}

func writeFile(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// freeAddress returns a loopback address on which nothing listens, each time another one.
var freeAddress = testenv.FreeAddress

func get(t *testing.T, url, accept string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", url, body)
	return body
}

// postSpans sends OTLP spans over HTTP.
func postSpans(t *testing.T, address, contentType string, body []byte) {
	t.Helper()
	response, err := http.Post("http://"+address+"/v1/traces", contentType, bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}

// collector is a running Collector and its addresses.
type collector struct {
	*process
	http, grpc, metrics string
}

// ownMetricsOff turns off the Collector's own metrics, which examples have on a fixed port.
const ownMetricsOff = "--set=service.telemetry.metrics.level=none"

// startCollector runs the Collector with a config file, unused ports, and optional
// further arguments.
func startCollector(t *testing.T, config string, more ...string) *collector {
	t.Helper()
	c := &collector{http: freeAddress(t), grpc: freeAddress(t), metrics: freeAddress(t)}
	if strings.HasPrefix(config, filepath.Join(testenv.Root(t), "examples")) {
		more = append([]string{ownMetricsOff}, more...)
	}
	arguments := append([]string{
		"--config", config,
		"--set", "receivers.token_stream.protocols.http.endpoint=" + c.http,
		"--set", "receivers.token_stream.protocols.grpc.endpoint=" + c.grpc,
		"--set", "exporters.token_sli.endpoint=" + c.metrics,
		// Tests have seconds where users have minutes. TestFirstErrors has a scaled zero_for.
		"--set", "exporters.token_sli.zero_for=0s",
	}, more...)
	c.process = start(t, underTest(t), arguments...)
	c.waitFor(t, c.metricsURL())
	c.waitUntilReady(t)
	return c
}

// fullDetail are arguments of startCollector that make the processor write every number.
var fullDetail = []string{"--set", "processors.token_latency.detail=full"}

func (c *collector) metricsURL() string { return fmt.Sprintf("http://%s/metrics", c.metrics) }

// endpoint returns the address that a tokengen transport sends to.
func (c *collector) endpoint(transport string) string {
	if transport == "grpc" || transport == "grpc-stream" {
		return c.grpc
	}
	return c.http
}
