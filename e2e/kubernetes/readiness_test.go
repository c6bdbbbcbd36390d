// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	otel "github.com/open-telemetry/opentelemetry-operator/apis/v1beta1"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/probe"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
	"sigs.k8s.io/yaml"
)

// ports are those of the examples, and unused ones that take their place.
var ports = [...]string{"4321", "4322", "8000"}

// onFreePorts replaces the ports of the examples.
func onFreePorts(t *testing.T) *strings.Replacer {
	t.Helper()
	var replace []string
	for _, port := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		replace = append(replace, port, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	}
	return strings.NewReplacer(append(replace, "0.0.0.0", "127.0.0.1")...)
}

// runSidecar runs the Collector of sidecar.yaml.
func runSidecar(t *testing.T, replace *strings.Replacer) (stop func()) {
	t.Helper()
	sidecar := read[otel.OpenTelemetryCollector](t, "kubernetes/sidecar.yaml")
	config, err := yaml.Marshal(&sidecar.Spec.Config)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(replace.Replace(string(config))), 0o600))
	command := exec.Command(filepath.Join(root, "dist", "otelcol-tokenpulse"), "--config", file,
		"--set=exporters.otlp_grpc.endpoint=127.0.0.1:1", "--set=service.telemetry.metrics.level=none")
	require.NoError(t, command.Start())
	stop = func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// The kubelet's own prober asks the sidecar of the engine whether its pod may get requests.
func TestReadinessProbe_FollowsTheEngine(t *testing.T) {
	replace := onFreePorts(t)
	container := read[apps.Deployment](t, "kubernetes/engine.yaml").Spec.Template.Spec.Containers[0]
	get := container.ReadinessProbe.HTTPGet
	get.Path = replace.Replace(get.Path)
	get.Port = intstr.FromString(replace.Replace(get.Port.String()))
	requireResult := func(want probe.Result, says string) {
		t.Helper()
		var result probe.Result
		var output string
		require.Eventually(t, func() bool {
			result, output = ask(t, get, &container)
			return result == want && strings.Contains(output, says)
		}, 30*time.Second, 100*time.Millisecond, "want %s, %q", want, says)
	}
	requireResult(probe.Failure, "connection refused")

	stop := runSidecar(t, replace)
	requireResult(probe.Success, `"state":"unknown"`)
	generate := func() (status int) {
		response, err := http.Post(replace.Replace("http://127.0.0.1:4321/v1/chat/completions"), "application/json", strings.NewReader(`{"model":"m","stream":true}`))
		require.NoError(t, err)
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		return response.StatusCode
	}
	for range 3 {
		require.Equal(t, http.StatusBadGateway, generate(), "the engine does not listen yet")
	}
	requireResult(probe.Failure, "statuscode: 503")

	startEngine(t, replace.Replace("localhost:8000"))
	require.Equal(t, http.StatusOK, generate())
	requireResult(probe.Success, `"state":"idle"`)
	stop()
	requireResult(probe.Failure, "connection refused")
}

// ask is one probe, as the kubelet does it.
func ask(t *testing.T, get *core.HTTPGetAction, container *core.Container) (result probe.Result, output string) {
	t.Helper()
	const podIP = "127.0.0.1"
	request, err := httpprobe.NewRequestForHTTPGetAction(get, container, podIP, "probe")
	require.NoError(t, err)
	const followsOtherHosts = false
	result, output, err = httpprobe.New(followsOtherHosts).Probe(request, time.Second) // the default of timeoutSeconds
	require.NoError(t, err)
	return result, output
}

// startEngine runs a server whose answers have one token.
func startEngine(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	engine := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"x"}}]}`+"\n\n"+
			`data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	})}}
	engine.Start()
	t.Cleanup(engine.Close)
}
