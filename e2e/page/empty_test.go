// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
)

// commandsOf returns the commands that the page shows before the first request, by the end of their titles.
func (p *tab) commandsOf() map[string]string {
	p.t.Helper()
	p.waitUntil(`document.querySelector('#empty pre')`)
	commands := map[string]string{}
	for _, card := range evaluate[[][2]string](p, `[...document.querySelectorAll('#empty .card')].filter(card => card.querySelector('pre')).map(card => [card.querySelector('h3').textContent, card.querySelector('pre').textContent])`) {
		title := strings.Fields(card[0])
		commands[title[len(title)-1]] = card[1]
	}
	return commands
}

// runShown runs a command of the page in a shell, as it is.
func runShown(t *testing.T, command string, environment ...string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-ec", command)
	shell.Env = append(os.Environ(), environment...)
	output, err := shell.CombinedOutput()
	require.NoError(t, err, "%s\n%s", command, output)
}

// waitForModel waits until the page shows requests to a model, without a reload.
func (p *tab) waitForModel(model string) {
	p.t.Helper()
	p.waitUntil(`document.querySelector('#trend-time_to_first_token .legend button').textContent === '` + model + `'`)
}

// A user opens the page before the first request. The command that the page shows makes
// one, and the page shows it without a reload.
func TestLivePage_ShowsTheFirstRequestThatItsOwnCommandSends(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	p := openTab(t, c.PageURL(""))
	commands := p.commandsOf()
	p.screenshot("empty")
	require.Len(t, commands, 1, "there is no token_tap, and no otlp receiver")
	runShown(t, commands["token_stream"])
	p.waitForModel("my-model")
	require.Equal(t, []string{"250 ms", "250 ms", "250 ms"}, evaluate[[]string](p, legend("time_to_first_token", "my-model")))
	require.Equal(t, "22.5 ms · 44.4 tok/s", evaluate[[]string](p, legend("time_per_output_token", "my-model"))[0])
}

const tapAndStream = `
receivers:
  token_stream: {protocols: {http: {endpoint: "0.0.0.0:%s"}, grpc: {endpoint: %q}}}
  token_tap:
    endpoint: %q
    routes:
      - {prefix: /openai, upstream: {endpoint: %q}}
processors: {token_latency: }
exporters: {token_sli: }
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream, token_tap], processors: [token_latency], exporters: [token_sli]}
`

// A receiver that listens on all addresses is reached at the host of the page, and a route of the tap with its prefix, whether
// the upstream has the version in its path or not.
func TestLivePage_ShowsCommandsForTheReceiversOfItsCollector(t *testing.T) {
	t.Parallel()
	upstream := llmservice.Start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "no such path", http.StatusNotFound)
			return
		}
		llmservice.WriteChunks(w, 5)
		_, _ = w.Write([]byte(llmservice.ChatEnd))
	})
	for version, base := range map[string]string{"": "/openai/v1", "/v1": "/openai"} {
		t.Run("upstream"+version, func(t *testing.T) {
			all, tap := collector.FreeAddress(t), collector.FreeAddress(t)
			_, port, err := net.SplitHostPort(all)
			require.NoError(t, err)
			c := &collector.Collector{Metrics: collector.FreeAddress(t)}
			config := collector.WriteFile(t, t.TempDir(), "page.yaml", fmt.Sprintf(tapAndStream, port, collector.FreeAddress(t), tap, upstream.URL+version))
			c.Process = collector.StartProcess(t, collector.Built(t, "otelcol-tokenpulse"), "--config", config, "--set", "exporters.token_sli.endpoint="+c.Metrics)
			c.WaitFor(t, c.MetricsURL())
			p := openTab(t, c.PageURL(""))
			commands := p.commandsOf()
			require.Contains(t, commands["token_stream"], "http://127.0.0.1:"+port+"/v1/tokens")
			require.Contains(t, p.text(`document.querySelector('#empty').textContent`), "http://"+tap+base+". ")
			runShown(t, commands["token_tap"], "MODEL=first-model", "OPENAI_API_KEY=secret")
			p.waitForModel("first-model")

			unset, err := exec.CommandContext(t.Context(), "env", "-u", "MODEL", "sh", "-ec", commands["token_tap"]).CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(unset), "MODEL: is not set: export one that the service has")
		})
	}
}

// Without a receiver of tokenpulse, the page shows a span. The test replaces the default port of otlp.
func TestLivePage_ShowsASpanToSendWithoutAReceiverOfTokenpulse(t *testing.T) {
	t.Parallel()
	otlp := collector.FreeAddress(t)
	c := &collector.Collector{Metrics: collector.FreeAddress(t)}
	config := collector.WriteFile(t, t.TempDir(), "page.yaml", fmt.Sprintf(strings.Replace(pageOfOtherCollector, "receivers: [otlp],", "receivers: [otlp], processors: [token_latency],", 1), otlp)+"processors: {token_latency: }\n")
	c.Process = collector.StartProcess(t, collector.Built(t, "otelcol-tokenpulse"), "--config", config, "--set", "exporters.token_sli.endpoint="+c.Metrics)
	c.WaitFor(t, c.MetricsURL())
	p := openTab(t, c.PageURL(""))
	commands := p.commandsOf()
	require.Len(t, commands, 1)
	require.Contains(t, commands["otlp"], "127.0.0.1:4318")
	runShown(t, strings.Replace(commands["otlp"], "127.0.0.1:4318", otlp, 1))
	p.waitForModel("my-model")
	require.Equal(t, "250 ms", evaluate[[]string](p, legend("time_to_first_token", "my-model"))[0])
}

// Links of the page to the documentation lead to a file and, with an anchor, to its section.
func TestLivePage_LinksOfTheFirstScreenLeadToSections(t *testing.T) {
	t.Parallel()
	p := openTab(t, startPageCollector(t).PageURL(""))
	p.waitUntil(`document.querySelector('#empty pre')`)
	const repository = "https://github.com/tokenpulse/tokenpulse/blob/main/"
	links := evaluate[map[string]string](p, `Object.fromEntries([...document.querySelectorAll('#empty a')].map(link => [link.textContent, link.href]))`)
	require.Equal(t, repository+"docs/operations.md#mistakes-in-pipelines", links["Find out why"])
	for name, link := range links {
		path, ok := strings.CutPrefix(link, repository)
		require.True(t, ok, "%s: %s", name, link)
		file, anchor, _ := strings.Cut(path, "#")
		text := markdown.Read(t, file)
		require.True(t, anchor == "" || markdown.Anchors(text)[anchor], "%s: %s", name, link)
	}
	require.NotContains(t, p.text(`document.querySelector('#empty').textContent`), "go run", "Go does not run a module with replacements")
}
