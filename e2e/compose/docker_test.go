// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build compose

package compose

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// startDocker starts a daemon with images, containers and volumes of its own, unless one runs.
func startDocker(t *testing.T) {
	t.Helper()
	testenv.Program(t, "docker")
	if exec.Command("docker", "version").Run() == nil {
		return
	}
	daemon := testenv.Program(t, "dockerd")
	if os.Geteuid() != 0 {
		testenv.Missing(t, "needs a Docker daemon, or root to start one")
	}
	folder := t.TempDir()
	socket := "unix://" + filepath.Join(folder, "socket")
	started := collector.StartProcess(t, daemon, "--host", socket, "--data-root", filepath.Join(folder, "data"),
		"--exec-root", filepath.Join(folder, "run"), "--pidfile", filepath.Join(folder, "pid"))
	t.Setenv("DOCKER_HOST", socket)
	require.Eventually(t, func() bool {
		select {
		case <-started.Exited:
			t.Fatalf("dockerd exited early:\n%s", started.Output(t))
		default:
		}
		return exec.Command("docker", "version").Run() == nil
	}, collector.Patience, 200*time.Millisecond, "dockerd does not answer")
}

// docker runs a command of Docker, and returns what it writes.
func docker(t *testing.T, arguments ...string) string {
	t.Helper()
	return shell(t, `docker "$@"`, arguments...)
}

// shell runs commands in the root of the project, and returns what they write.
func shell(t *testing.T, commands string, arguments ...string) string {
	t.Helper()
	// Cleanups run commands too: the context of the test is then cancelled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", append([]string{"-euc", commands, "sh"}, arguments...)...)
	command.Dir = testenv.Root(t)
	command.Env = append(os.Environ(), "DOCKER_BUILDKIT=1")
	written, err := command.CombinedOutput()
	require.NoError(t, err, "%s %v:\n%s", commands, arguments, written)
	return strings.TrimSpace(string(written))
}

// buildStandIn builds an image that the machine lacks. The end of the test removes it.
func buildStandIn(t *testing.T, image, dockerfile, folder string) {
	t.Helper()
	if exec.Command("docker", "image", "inspect", image).Run() == nil {
		t.Logf("%s is the image that the machine has", image)
		return
	}
	removeImage(t, image)
	shell(t, `printf %s "$1" | docker build --tag "$2" --file - "$3"`, dockerfile, image, folder)
}

func removeImage(t *testing.T, image string) {
	t.Cleanup(func() { docker(t, "image", "rm", "--force", image) })
}

// requireLocal checks that no port of a container is published beyond this machine.
func requireLocal(t *testing.T, container string) {
	t.Helper()
	published := docker(t, "port", container)
	require.NotEmpty(t, published, container)
	for port := range strings.Lines(published) {
		require.Contains(t, port, "-> 127.0.0.1:", container)
	}
}
