// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
)

// realGrafana is a running Grafana.
type realGrafana struct{ url string }

// startGrafana starts Grafana 9.4 or later, with a Prometheus as its data source. The test skips if it is not installed, also in CI:
// neither Debian nor a registry of packages has it.
func startGrafana(t *testing.T, source *promserver.Server) realGrafana {
	t.Helper()
	found, err := exec.LookPath("grafana")
	if err != nil {
		t.Skip("needs the program grafana, which is not in Debian: install it from grafana.com, with grafana in PATH")
	}
	found, err = filepath.EvalSymlinks(found)
	require.NoError(t, err)
	// The package has a script in PATH, the archive the program itself.
	home := "/usr/share/grafana"
	if of := filepath.Dir(filepath.Dir(found)); exists(filepath.Join(of, "conf", "defaults.ini")) {
		home = of
	}
	address, data := collector.FreeAddress(t), t.TempDir()
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	for name, value := range map[string]string{
		"SERVER_HTTP_ADDR": host, "SERVER_HTTP_PORT": port, "PATHS_DATA": data, "PATHS_LOGS": data, "PATHS_PLUGINS": data,
		"PATHS_PROVISIONING": data, "AUTH_ANONYMOUS_ENABLED": "true", "AUTH_ANONYMOUS_ORG_ROLE": "Admin",
		"ANALYTICS_REPORTING_ENABLED": "false", "ANALYTICS_CHECK_FOR_UPDATES": "false", "ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
	} {
		collector.Setenv(t, "GF_"+name, value)
	}
	g := realGrafana{"http://" + address}
	collector.StartProcess(t, filepath.Join(home, "bin", "grafana"), "server", "--homepath", home).WaitFor(t, g.url+"/api/health")
	g.send(t, "/api/datasources", map[string]string{"name": "Prometheus", "uid": "prometheus", "type": "prometheus", "access": "proxy", "url": "http://" + source.Address}, &struct{}{})
	return g
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// send sends JSON, or a GET without any, and reads the answer.
func (g realGrafana) send(t *testing.T, path string, content, answer any) {
	t.Helper()
	method, body := http.MethodGet, []byte(nil)
	if content != nil {
		var err error
		method = http.MethodPost
		body, err = json.Marshal(content)
		require.NoError(t, err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, g.url+path, bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, got)
	require.NoError(t, json.Unmarshal(got, answer), "%s", got)
}

// requireImport imports a dashboard, reads it back, and lets Grafana run the queries of all
// panels. Queries that contain except may return nothing.
func (g realGrafana) requireImport(t *testing.T, d grafanaDashboard, variables *grafana, except string) (queries int) {
	t.Helper()
	var imported struct{ UID, Status string }
	g.send(t, "/api/dashboards/db", map[string]any{"dashboard": json.RawMessage(d.text), "overwrite": true}, &imported)
	require.Equal(t, "success", imported.Status)
	require.Equal(t, d.UID, imported.UID)
	var stored struct{ Dashboard grafanaDashboard }
	g.send(t, "/api/dashboards/uid/"+d.UID, nil, &stored)
	require.Equal(t, d.Title, stored.Dashboard.Title)
	require.Equal(t, d.Templating, stored.Dashboard.Templating)
	require.Equal(t, d.Panels, stored.Dashboard.Panels, "Grafana changed a panel")
	from, to := strconv.FormatInt(variables.at.Add(-5*time.Minute).UnixMilli(), 10), strconv.FormatInt(variables.at.UnixMilli(), 10)
	for _, p := range stored.Dashboard.Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, except) {
				continue
			}
			var answer struct {
				Results map[string]struct {
					Status int
					Error  string
					Frames []json.RawMessage
				}
			}
			g.send(t, "/api/ds/query", map[string]any{"from": from, "to": to, "queries": []any{map[string]any{
				"refId": target.RefID, "datasource": map[string]string{"type": "prometheus", "uid": "prometheus"}, "expr": variables.replace(target.Expr),
				"instant": target.Instant, "range": target.Range, "exemplar": target.Exemplar, "intervalMs": 1000, "maxDataPoints": 300,
			}}}, &answer)
			require.Empty(t, answer.Results[target.RefID].Error, "%s of %q", target.RefID, p.Title)
			require.Equal(t, http.StatusOK, answer.Results[target.RefID].Status, "%s of %q", target.RefID, p.Title)
			require.NotEmpty(t, answer.Results[target.RefID].Frames, "%s of %q", target.RefID, p.Title)
			queries++
		}
	}
	return queries
}
