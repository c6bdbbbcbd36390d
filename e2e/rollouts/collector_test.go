// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// collector is the built Collector with the configuration of examples/canary.
type collector struct{ api, otlp string }

func startCollector(t *testing.T) *collector {
	t.Helper()
	metrics, otlp := freeAddress(t), freeAddress(t)
	c := &collector{api: "http://" + metrics, otlp: "http://" + otlp}
	log, err := os.Create(filepath.Join(t.TempDir(), "collector.log"))
	require.NoError(t, err)
	command := exec.Command(filepath.Join("..", "..", "dist", "otelcol-tokenpulse"),
		"--config", example("collector.yaml"), "--set=service.telemetry.metrics.level=none",
		"--set=receivers.token_stream.protocols.http.endpoint="+freeAddress(t), "--set=receivers.token_stream.protocols.grpc.endpoint="+freeAddress(t))
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "METRICS_ENDPOINT="+metrics, "OTLP_HTTP_ENDPOINT="+otlp, "OTLP_GRPC_ENDPOINT="+freeAddress(t), "STORAGE_DIRECTORY="+t.TempDir())
	require.NoError(t, command.Start(), "run make build first")
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the Collector wrote:\n%s", text)
		}
	})
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(log.Name())
		return err == nil && bytes.Contains(text, []byte("Everything is ready"))
	}, 30*time.Second, 50*time.Millisecond)
	return c
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// since returns when the evidence of a pair begins.
func (c *collector) since(t *testing.T, metadata map[string]string) float64 {
	t.Helper()
	values := url.Values{}
	for _, name := range []string{"dimension", "baseline", "candidate", "slo"} {
		values.Set(name, metadata[name])
	}
	response, err := http.Get(c.api + "/api/v1/compare?" + values.Encode())
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	var answer struct{ Since float64 }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer.Since
}

// replicas of each version, and its requests per second. A tenth of the baselines' requests are bad.
const (
	replicas    = 5
	rate        = 20
	baselineBad = 0.1
)

// send sends the requests of all pairs until the test ends, as spans of vLLM.
func (c *collector) send(t *testing.T, pairs []*pair) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	second := func(now time.Time) {
		var resources []any
		for _, p := range pairs {
			for range rate {
				resources = append(resources,
					request(random, now, p.service+"-primary", p.baseline, baselineBad),
					request(random, now, p.service, p.candidate, p.bad))
			}
		}
		body, err := json.Marshal(map[string]any{"resourceSpans": resources})
		if err != nil {
			panic(err)
		}
		response, err := http.Post(c.otlp+"/v1/traces", "application/json", bytes.NewReader(body))
		if err == nil {
			_ = response.Body.Close()
		}
	}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-t.Context().Done():
				return
			case now := <-tick.C:
				second(now)
			}
		}
	}()
}

// request is one that ends now. A bad one has its first token after 2 s, a good one after 0.2 s.
func request(random *rand.Rand, now time.Time, deployment, version string, bad float64) any {
	toFirst := 0.2
	if random.Float64() < bad {
		toFirst = 2
	}
	length := toFirst + 1
	span := attributes(map[string]any{
		"gen_ai.request.model": "llama", "gen_ai.latency.time_to_first_token": toFirst, "gen_ai.latency.e2e": length,
		"gen_ai.latency.time_in_model_decode": 1.0, "gen_ai.usage.completion_tokens": 101,
	})
	maps.Copy(span, map[string]any{
		"traceId": fmt.Sprintf("%016x%016x", random.Uint64(), random.Uint64()), "spanId": fmt.Sprintf("%016x", random.Uint64()),
		"name": "llm_request", "kind": 2,
		"startTimeUnixNano": unixNano(now.Add(-time.Duration(length * float64(time.Second)))), "endTimeUnixNano": unixNano(now),
	})
	return map[string]any{
		"resource": attributes(map[string]any{
			"service.version": version, "k8s.deployment.name": deployment,
			"service.instance.id": fmt.Sprintf("%s-%s-%d", deployment, version, random.IntN(replicas)),
		}),
		"scopeSpans": []any{map[string]any{"spans": []any{span}}},
	}
}

func unixNano(at time.Time) string { return strconv.FormatInt(at.UnixNano(), 10) }

// attributes returns attributes in OTLP's JSON.
func attributes(values map[string]any) map[string]any {
	var all []any
	for name, value := range values {
		kind := "stringValue"
		switch value.(type) {
		case float64:
			kind = "doubleValue"
		case int:
			kind = "intValue"
		}
		all = append(all, map[string]any{"key": name, "value": map[string]any{kind: value}})
	}
	return map[string]any{"attributes": all}
}
