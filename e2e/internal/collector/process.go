// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package collector starts the built Collector and other programs for the tests of e2e. Run `make
// build` first.
package collector

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// Patience is the time after which a test gives up waiting.
const Patience = 30 * time.Second

// Process is a running program. It is stopped when the test ends.
type Process struct {
	Command *exec.Cmd
	log     string
	Exited  chan struct{}
}

// Signal signals the process and its children, as Ctrl-C in a terminal does.
func (p *Process) Signal(signal syscall.Signal) {
	_ = syscall.Kill(-p.Command.Process.Pid, signal)
}

// Stop sends SIGTERM, as an init system does, and waits until the process has exited.
func (p *Process) Stop(t *testing.T) {
	t.Helper()
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.Exited:
	case <-time.After(Patience):
		p.Signal(syscall.SIGKILL)
		<-p.Exited
		t.Errorf("%s did not stop after SIGTERM", p.Command.Path)
	}
}

// Output returns what the process has written so far.
func (p *Process) Output(t *testing.T) string {
	t.Helper()
	written, err := os.ReadFile(p.log)
	require.NoError(t, err)
	return string(written)
}

// WaitFor requests a URL until the answer is 200.
func (p *Process) WaitFor(t *testing.T, url string) {
	t.Helper()
	require.Eventually(t, func() bool {
		select {
		case <-p.Exited:
			t.Fatalf("%s exited early:\n%s", p.Command.Path, p.Output(t))
		default:
		}
		response, err := http.Get(url)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, Patience, 50*time.Millisecond, "%s does not answer with 200", url)
}

// WaitUntilReady waits until all parts of a Collector have started. Exporters start first, so
// that /metrics answers before a receiver listens.
func (p *Process) WaitUntilReady(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return p.starts(t) > 0 }, Patience, 10*time.Millisecond, "%s does not get ready", p.Command.Path)
}

// starts returns how often all parts of a Collector have started.
func (p *Process) starts(t *testing.T) int {
	t.Helper()
	return strings.Count(p.Output(t), "Everything is ready")
}

// StartProcess runs a program with the environment of the test.
func StartProcess(t *testing.T, path string, args ...string) *Process {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), filepath.Base(path)+"-*.log")
	require.NoError(t, err)
	p := &Process{Command: exec.Command(path, args...), log: log.Name(), Exited: make(chan struct{})}
	p.Command.Env, p.Command.Stdout, p.Command.Stderr = environ(t), log, log
	p.Command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, p.Command.Start())
	go func() {
		_ = p.Command.Wait()
		_ = log.Close()
		close(p.Exited)
	}()
	t.Cleanup(func() {
		p.Stop(t)
		if t.Failed() {
			t.Logf("%s wrote:\n%s", filepath.Base(path), p.Output(t))
		}
	})
	return p
}

// Built returns the path of a program in the folder dist.
func Built(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(testenv.Root(t), "dist", name)
	require.FileExists(t, path, "run make dist/%s first", name)
	return path
}

// underTest returns the path of the Collector to test.
func underTest(t *testing.T) string {
	if *otherCollector != "" {
		return *otherCollector
	}
	return Built(t, "otelcol-tokenpulse")
}

var otherCollector = flag.String("collector", "", "the Collector to test, in place of dist/otelcol-tokenpulse")

// Run runs a program until it has exited with 0, and returns what it wrote.
func Run(t *testing.T, path string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, path, args...)
	command.Env = environ(t)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s %v:\n%s", path, args, output)
	return string(output)
}

// WriteFile writes a file that only its owner reads, and returns its path.
func WriteFile(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// FreeAddress returns a loopback address on which nothing listens, each time another one.
var FreeAddress = testenv.FreeAddress

// Get returns the body of an answer with status 200.
func Get(t *testing.T, url, accept string) []byte {
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

// WaitForListener waits until the process listens on an address.
func (p *Process) WaitForListener(t *testing.T, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		connection, err := net.Dial("tcp", address)
		return err == nil && connection.Close() == nil
	}, Patience, 50*time.Millisecond, "%s does not listen on %s", p.Command.Path, address)
}

// Kill sends SIGKILL, so that the process cannot save, and waits until it has exited.
func (p *Process) Kill(t *testing.T) {
	t.Helper()
	p.Signal(syscall.SIGKILL)
	select {
	case <-p.Exited:
	case <-time.After(Patience):
		t.Fatal("the process did not exit after SIGKILL")
	}
}

// Memory returns a number of bytes from /proc.
func (p *Process) Memory(t *testing.T, name string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Command.Process.Pid))
	require.NoError(t, err)
	found := regexp.MustCompile(name + `:\s*(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, found)
	kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	require.NoError(t, err)
	return kilobytes << 10
}

// PeakMemory returns the peak resident memory of a process in bytes.
func (p *Process) PeakMemory(t *testing.T) int64 { return p.Memory(t, "VmHWM") }

// Descriptors returns the number of open files and sockets of a process.
func (p *Process) Descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Command.Process.Pid))
	require.NoError(t, err)
	return len(open)
}

// ProcessorTime returns the user and kernel time of the process.
func (p *Process) ProcessorTime(t *testing.T) time.Duration {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Command.Process.Pid))
	require.NoError(t, err)
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	const ticksPerSecond = 100
	total := time.Duration(0)
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(string(field))
		require.NoError(t, err)
		total += time.Duration(ticks) * time.Second / ticksPerSecond
	}
	return total
}
