// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/vllmfleet"
)

func TestLivePage_SaysHowMuchRoomTheReplicasHave(t *testing.T) {
	t.Parallel()
	collector.ExampleEnvironment(t)
	collector.Setenv(t, "STORAGE_DIRECTORY", t.TempDir())
	c := collector.Start(t, collector.Example(t, "capacity/collector.yaml"))
	_, content := api(t, c, "openapi.yaml")
	d := parseDescription(t, content)
	const path = "/api/v1/capacity"
	described := func(status string) string {
		t.Helper()
		code, body := send(t, http.MethodGet, c.PageURL(path[1:]))
		require.Equal(t, status, strings.Split(http.StatusText(code), " ")[0])
		if code != http.StatusOK {
			d.check(t, path, "default", "application/json", body)
		} else {
			d.check(t, path, "200", "application/json", body)
		}
		return string(body)
	}
	require.Contains(t, described("Service"), `"reason":"too_few"`)

	fleet := &vllmfleet.Fleet{
		Address: collector.Getenv(t, "OTLP_HTTP_ENDPOINT"), Model: "m", Replicas: []string{"a", "b"}, At: time.Now().Add(-188 * time.Minute),
	}
	fleet.Serve(t, 140*time.Minute, 2, false)
	p := openTab(t, c.PageURL("?load=output_tokens_per_second"))
	p.waitUntilLoaded()
	p.show("load")
	const text = `document.querySelector('#load .heading p').textContent`
	p.waitUntil(text + `.includes('The limit within all SLOs is unknown: no load has been too high yet.')`)
	fleet.Serve(t, time.Minute, 4, false)
	fleet.Serve(t, 39*time.Minute, 4, true)
	fleet.At = time.Now().Add(-2 * time.Minute)
	fleet.Serve(t, 2*time.Minute, 1, false)

	p.waitUntil(text + `.includes('Room for ')`)
	var answer struct{ Limit, Room struct{ Requests float64 } }
	c.AskPage(t, "capacity", &answer)
	described("OK")
	require.InDelta(t, 2*answer.Limit.Requests-2, answer.Room.Requests, 0.2, "two replicas with 1 request/s each")
	require.Regexp(t, `Room for 1\.\d+ more requests/s within all SLOs\.`, p.text(text))
	require.Regexp(t, `\d+(, right of the chart,)? is the limit of the replicas within all SLOs`, p.text(`document.querySelector('#load .marks').textContent`))
	p.screenshot("capacity")
}
