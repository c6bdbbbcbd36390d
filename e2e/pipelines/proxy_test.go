// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package pipelines tests the examples and the paths of spans, streams and metrics through the
// built Collector.
package pipelines

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// nginx balances two Collectors as in examples/fleet/nginx.conf. Each event is a request
// of its own, and all events of a stream reach the Collector that has its start.
func TestExampleNginx_KeepsTheEventsOfAStreamTogether(t *testing.T) {
	t.Parallel()
	program := testenv.Program(t, "nginx")
	collectors := []*collector.Collector{collector.Start(t, collector.Example(t, "quickstart.yaml")), collector.Start(t, collector.Example(t, "quickstart.yaml"))}
	address := startNginx(t, program, collectors)

	const streams = 40
	for i := range streams {
		events := []string{
			`{"event":"start","stream_id":"s-%d","time_unix_nano":"1767225600000000000"}`,
			`{"event":"chunk","stream_id":"s-%d","time_unix_nano":"1767225600200000000"}`,
			`{"event":"chunk","stream_id":"s-%d","time_unix_nano":"1767225600300000000"}`,
			`{"event":"end","stream_id":"s-%d","time_unix_nano":"1767225600400000000"}`,
		}
		for _, event := range events {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/v1/tokens",
				strings.NewReader(fmt.Sprintf(event, i)))
			require.NoError(t, err)
			request.Header.Set("Content-Type", "application/x-ndjson")
			request.Header.Set("X-Stream-Id", fmt.Sprintf("s-%d", i))
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, http.StatusOK, response.StatusCode, "%s of stream %d", event, i)
		}
	}

	whole := uint64(0)
	for _, c := range collectors {
		families := exposition.Scrape(t, c)
		gaps := exposition.Find(t, families["tokenpulse_inter_token_latency_seconds"], map[string]string{"outcome": "success"})
		require.Positive(t, gaps.GetHistogram().GetSampleCount(), "a Collector got no stream")
		whole += gaps.GetHistogram().GetSampleCount()
	}
	require.EqualValues(t, streams, whole, "streams with both of their chunks")
}

// startNginx runs nginx with the example's config and other addresses.
func startNginx(t *testing.T, program string, collectors []*collector.Collector) (address string) {
	t.Helper()
	address = collector.FreeAddress(t)
	config, err := os.ReadFile(collector.Example(t, filepath.Join("fleet", "nginx.conf")))
	require.NoError(t, err)
	folder := t.TempDir()
	// The default folders of temporary files need root.
	temporary := "http {\naccess_log off;\n" + strings.ReplaceAll(
		"client_body_temp_path DIR; proxy_temp_path DIR; fastcgi_temp_path DIR; uwsgi_temp_path DIR; scgi_temp_path DIR;\n", "DIR", folder)
	addresses := strings.NewReplacer("127.0.0.1:8319", address, "127.0.0.1:4319", collectors[0].HTTP,
		"127.0.0.1:4329", collectors[1].HTTP, "http {\n", temporary)
	p := collector.StartProcess(t, program, "-p", folder, "-c", collector.WriteFile(t, folder, "nginx.conf", addresses.Replace(string(config))),
		"-g", "daemon off; error_log stderr; pid "+filepath.Join(folder, "pid")+";")
	p.WaitForListener(t, address)
	return address
}
