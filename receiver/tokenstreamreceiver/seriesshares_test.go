// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// A sender that invents service names leaves series to others, however its streams reach their series.
func TestSeries_AClientOpensItsShareOnceHalfOfThemAreOpen(t *testing.T) {
	starting := func(id string) string {
		return startWith(id, at(0), fmt.Sprintf(`"resource":{"service.name":%q}`, id))
	}
	byEvents := func(p *pipelines, c *http.Client, id string) {
		p.postAs(t, c, typeNDJSON, []byte(starting(id)+"\n"+endLine(id)+"\n"))
	}
	tests := map[string]struct {
		change func(*publish.Config)
		send   func(p *pipelines, c *http.Client, id string)
	}{
		"in one request": {send: byEvents},
		"whole": {send: func(p *pipelines, c *http.Client, id string) {
			p.postAs(t, c, typeProtobuf, wholeStreamOf(t, id))
		}},
		"in two requests": {send: func(p *pipelines, c *http.Client, id string) {
			p.postAs(t, c, typeNDJSON, []byte(starting(id)+"\n"))
			p.postAs(t, c, typeNDJSON, []byte(endLine(id)+"\n"))
		}},
		"expired": {send: func(p *pipelines, c *http.Client, id string) {
			p.postAs(t, c, typeNDJSON, []byte(starting(id)+"\n"))
			eventually(t, func() bool { return p.ingester.Store.Streams() == 0 }, "the stream expires")
		}},
		"by way of spans": {send: byEvents, change: func(s *publish.Config) {
			s.Shared.Series.Dimensions = series.DimensionsOf(names.ServiceName, names.GenAIOutputTokens)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := inMetricsPipeline(t, nil, func(c *Config) {
				series := publish.NewDefaultConfig()
				series.Shared.Series.MaxSeries = 20
				if test.change != nil {
					test.change(&series)
				}
				c.Series = configoptional.Some(series)
				c.IdleTimeout, c.FirstTokenTimeout = time.Minute, time.Minute
				if name == "expired" {
					c.FirstTokenTimeout = time.Millisecond
				}
			})
			p.start(t)
			loud, honest := clientAt(t, "127.0.0.1"), clientAt(t, "127.0.0.2")
			for i := range 14 {
				test.send(p, loud, fmt.Sprintf("loud-%04d", i))
			}
			require.Equal(t, 11, p.publisher.Keeper.Engine.Held(), "half of 20, and the one that exceeds it")
			for i := range 3 {
				test.send(p, honest, fmt.Sprintf("good-%04d", i))
			}
			require.Equal(t, 13, p.publisher.Keeper.Engine.Held(), "a tenth of 20 for another client")
		})
	}
}

// wholeStreamOf returns a message with one whole stream of a service, whose name has nine bytes.
func wholeStreamOf(t *testing.T, service string) []byte {
	t.Helper()
	message := encodeWhole(t, 1, 3, func(int) []*commonv1.KeyValue { return nil })
	return bytes.ReplaceAll(bytes.ReplaceAll(message, []byte("benchmark"), []byte(service)), []byte(idMark), []byte(service[1:]))
}

// clientAt returns a client whose connections come from an address.
func clientAt(t *testing.T, ip string) *http.Client {
	transport := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}).DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// postAs posts a body as a client.
func (b *bench) postAs(t *testing.T, c *http.Client, contentType string, body []byte) {
	t.Helper()
	resp, err := c.Do(post(b.url(), contentType, bytes.NewReader(body)))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}
