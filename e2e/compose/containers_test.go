// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build compose

package compose

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/judged"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The Collector in its container, on the ports that the pages name.
var published = &collector.Collector{HTTP: "localhost:4319", Metrics: "localhost:9464"}

// The tests follow each other, because they take the same ports.
func TestContainers(t *testing.T) {
	startDocker(t)
	removeImage(t, "otelcol-tokenpulse:local")
	removeImage(t, "tokenpulse:local")
	shell(t, "make image BASE=scratch")
	t.Run("image keeps budgets and history over a restart", testImage)
	t.Run("compose file shows requests, a trace and an alert", testCompose)
}

// testImage runs the command of docs/packages.md.
func testImage(t *testing.T) {
	_, after, found := strings.Cut(markdown.Read(t, "docs/packages.md"), "```sh\ndocker run ")
	require.True(t, found)
	arguments, _, _ := strings.Cut(after, "```")
	require.Contains(t, arguments, "--read-only")
	const name = "tokenpulse-test"
	t.Cleanup(func() {
		docker(t, "rm", "--force", name)
		docker(t, "volume", "rm", name)
	})
	shell(t, "docker run --detach --name "+name+" "+strings.NewReplacer(
		"ghcr.io/tokenpulse/tokenpulse:0.1.0", "otelcol-tokenpulse:local", "--volume tokenpulse:", "--volume "+name+":").Replace(arguments))
	waitForPage(t, name)

	requireLocal(t, name)
	require.Equal(t, "true", docker(t, "inspect", "--format", "{{.HostConfig.ReadonlyRootfs}}", name))
	status, err := os.ReadFile(filepath.Join("/proc", docker(t, "inspect", "--format", "{{.State.Pid}}", name), "status"))
	require.NoError(t, err)
	require.Contains(t, string(status), "Uid:\t65532\t65532\t65532\t65532")

	from := &judged.Sender{Endpoint: published.HTTP}
	from.SendAll(t, 90, judged.Fine, judged.NoToken, judged.Fine)
	exposition.WaitForRequests(t, published, 90)
	budgets := judged.ScrapedGauges(t, published)
	for _, model := range judged.Models { // a third of the requests is bad, and 1% may be
		require.InDelta(t, 1-(1./3)/0.01, budgets[judged.BudgetGauge{Model: model, SLO: "ttft"}], 1e-9)
	}
	history, toFirst := collector.HistoryRequests(t, published)
	require.Equal(t, 90, history)

	docker(t, "restart", name)
	waitForPage(t, name)
	require.Equal(t, budgets, judged.ScrapedGauges(t, published))
	again, toFirstAgain := collector.HistoryRequests(t, published)
	require.Equal(t, history, again)
	require.Equal(t, toFirst, toFirstAgain)
	require.Zero(t, exposition.RequestCount(exposition.ScrapeAny(t, published.MetricsURL())), "the Collector has not restarted")
}

// waitForPage waits until the Collector of a container serves its page.
func waitForPage(t *testing.T, container string) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := http.Get(published.PageURL(""))
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, collector.Patience, 100*time.Millisecond, "%s does not serve the page", container)
}

// standIns are Dockerfiles of the images that no registry gives, by service: the parts of the public
// images that compose.yaml relies on. The folder below dist has the program.
var standIns = map[string]struct{ folder, dockerfile string }{
	"prometheus": {"prometheus/3.14", `FROM scratch
COPY prometheus /bin/prometheus
USER 65534:65534
WORKDIR /prometheus
VOLUME /prometheus
ENTRYPOINT ["/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
`},
	"alertmanager": {"alertmanager/0.28.1", `FROM scratch
COPY alertmanager /bin/alertmanager
USER 65534:65534
WORKDIR /alertmanager
VOLUME /alertmanager
ENTRYPOINT ["/bin/alertmanager"]
CMD ["--config.file=/etc/alertmanager/alertmanager.yml", "--storage.path=/alertmanager"]
`},
	"jaeger": {"jaeger/1.76.0", `FROM scratch
COPY jaeger /cmd/jaeger/jaeger-linux
ENV JAEGER_LISTEN_HOST=0.0.0.0
USER 10001
ENTRYPOINT ["/cmd/jaeger/jaeger-linux"]
`},
}

// testCompose runs all commands of the README.
func testCompose(t *testing.T) {
	file := readCompose(t)
	var services []string
	for name, service := range file.Services {
		if standIn, ok := standIns[name]; ok {
			buildStandIn(t, service.Image, standIn.dockerfile, filepath.Join(testenv.Root(t), "dist", standIn.folder))
		}
		if name != "grafana" {
			services = append(services, name)
		}
	}
	readme := openReadme(t)
	t.Cleanup(func() { shell(t, readme.program+" --file examples/compose/compose.yaml down --volumes") })

	readme.run(t, "up --detach", services...)
	waitForPage(t, "collector")
	for _, name := range services {
		if len(file.Services[name].Ports) > 0 {
			requireLocal(t, shell(t, readme.program+" --file examples/compose/compose.yaml ps --quiet "+name))
		}
	}
	requireTrace(t)
	prometheus := &promserver.Server{Address: "localhost:9090"}
	prometheus.WaitUntil(t, `up{job="tokenpulse-self"} == 1`)
	prometheus.WaitUntil(t, `histogram_count(sum(tokenpulse_time_to_first_token_seconds)) > 0`)
	require.NotEmpty(t, prometheus.ExemplarTraces(t, "tokenpulse_time_to_first_token_seconds"))
	prometheus.WaitUntil(t, `tokenpulse_slo:burn_rate:5m{slo="chat-tpot"}`)
	require.Empty(t, prometheus.ResultsAt(t, `ALERTS{severity="page"}`, ""), "demo traffic raises a page")

	readme.run(t, "up --detach traffic")
	const breach = "TokenNearTotalBreach"
	require.Eventually(t, func() bool {
		return len(prometheus.ResultsAt(t, `ALERTS{alertstate="firing", slo="chat-tpot", alertname="`+breach+`"}`, "")) > 0
	}, 8*time.Minute, time.Second, "%s does not fire", breach)
	require.Eventually(t, func() bool {
		return strings.Contains(string(collector.Get(t, "http://localhost:9093/api/v2/alerts", "application/json")), breach)
	}, collector.Patience, 100*time.Millisecond, "%s does not reach Alertmanager", breach)

	readme.run(t, "stop traffic")
	before, _ := collector.HistoryRequests(t, published)
	readme.run(t, "restart collector")
	waitForPage(t, "collector")
	after, _ := collector.HistoryRequests(t, published)
	require.GreaterOrEqual(t, after, before, "the history is gone")
	readme.run(t, "down")
	readme.run(t, "down --volumes")
	require.Empty(t, readme.left, "commands that no test runs")
}

// readme has the commands of the README that are left to run.
type readme struct {
	program string // docker compose, or the older docker-compose
	left    []string
}

func openReadme(t *testing.T) *readme {
	t.Helper()
	r := &readme{program: "docker compose"}
	if exec.Command("docker", "compose", "version").Run() != nil {
		r.program = testenv.Program(t, "docker-compose")
	}
	blocks := strings.Split(markdown.Read(t, "examples/compose/README.md"), "```")
	for i := 1; i < len(blocks); i += 2 {
		for command := range strings.Lines(strings.TrimPrefix(blocks[i], "sh\n")) {
			command, _, _ = strings.Cut(command, "  #")
			r.left = append(r.left, strings.TrimSpace(command))
		}
	}
	require.Equal(t, "make image", r.left[0]) // TestContainers has run it
	r.left = r.left[1:]
	return r
}

// run runs the first command of the README that is left, which must have this end, with more arguments.
func (r *readme) run(t *testing.T, end string, more ...string) {
	t.Helper()
	require.NotEmpty(t, r.left, end)
	command := r.left[0]
	r.left = r.left[1:]
	require.True(t, strings.HasSuffix(command, end), command)
	shell(t, strings.Replace(command, "docker compose", r.program, 1)+` "$@"`, more...)
}

// requireTrace follows the link of a request on the page to its trace: Jaeger has its span, with the
// time to first token that the page shows.
func requireTrace(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		var page struct {
			Requests []struct {
				TraceLink string   `json:"trace_link"`
				ToFirst   *float64 `json:"time_to_first_token"`
			}
		}
		published.AskPage(t, "requests", &page)
		for _, request := range page.Requests {
			if request.ToFirst == nil {
				continue
			}
			link, err := url.Parse(request.TraceLink)
			require.NoError(t, err)
			require.Equal(t, "localhost:16686", link.Host)
			link.Path = "/api/traces/" + strings.TrimPrefix(link.Path, "/trace/") // a person opens the page, a test the API behind it
			response, err := http.Get(link.String())
			if err != nil {
				return false
			}
			var jaeger struct {
				Data []struct {
					Spans []struct {
						Tags []struct {
							Key   string
							Value any
						}
					}
				}
			}
			err = json.NewDecoder(response.Body).Decode(&jaeger)
			_ = response.Body.Close()
			if err != nil || len(jaeger.Data) == 0 {
				return false // it is on its way
			}
			require.Len(t, jaeger.Data[0].Spans, 1)
			for _, tag := range jaeger.Data[0].Spans[0].Tags {
				if tag.Key == "tokenpulse.time_to_first_token" {
					require.InDelta(t, *request.ToFirst, tag.Value, 1e-6)
					return true
				}
			}
			require.Fail(t, "the span has no time to first token")
		}
		return false
	}, collector.Patience, time.Second, "no trace of a request in Jaeger")
}
