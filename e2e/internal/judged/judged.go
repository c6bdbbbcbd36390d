// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package judged sends requests whose verdicts are known, and reads the budgets of them.
package judged

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
)

// Kind is a request with known verdicts.
type Kind struct {
	chunks      []time.Duration // since the request's start
	Failed      bool
	Good, Bad   []string
	NotEligible []string
}

// Requests by what they breach, of the SLOs first, each and all.
var (
	// Fine meets every SLO.
	Fine = Kind{chunks: []time.Duration{200 * time.Millisecond, 220 * time.Millisecond, 240 * time.Millisecond}, Good: []string{"first", "each", "all"}}
	// SlowFirst breaches the SLO of the first token.
	SlowFirst = Kind{chunks: []time.Duration{2 * time.Second, 2020 * time.Millisecond}, Good: []string{"each"}, Bad: []string{"first", "all"}}
	// SlowTokens breaches the SLO of each token.
	SlowTokens = Kind{chunks: []time.Duration{200 * time.Millisecond, 300 * time.Millisecond}, Good: []string{"first"}, Bad: []string{"each", "all"}}
	// OneToken has no time per output token to judge.
	OneToken = Kind{chunks: []time.Duration{200 * time.Millisecond}, Good: []string{"first", "all"}, NotEligible: []string{"each"}}
	// NoToken fails before its first token.
	NoToken = Kind{Failed: true, Bad: []string{"first", "each", "all"}}
)

// Models are the models of the requests, in turn.
var Models = []string{"small", "large"}

// SentRequest is a request that the Collector acknowledged or may have received.
type SentRequest struct {
	Kind  Kind
	Model string
	At    time.Time // of the acknowledgement; zero without one
}

// Sender sends one request after the other, without retries, so at most the last one is
// not acknowledged.
type Sender struct {
	Endpoint string
	number   int
	Accepted atomic.Int64
}

// Send sends the next request. It returns the request with an error, too.
func (s *Sender) Send(k Kind) (sent SentRequest, err error) {
	s.number++
	sent = SentRequest{Kind: k, Model: Models[s.number%len(Models)]}
	start := time.Now().Add(-5 * time.Second)
	var body strings.Builder
	line := func(event string, after time.Duration, more string) {
		fmt.Fprintf(&body, `{"event":%q,"stream_id":"s%d","time_unix_nano":"%d"%s}`+"\n", event, s.number, start.Add(after).UnixNano(), more)
	}
	line("start", 0, fmt.Sprintf(`,"attributes":{"gen_ai.request.model":%q}`, sent.Model))
	end := time.Second
	for _, after := range k.chunks {
		line("chunk", after, "")
		end = max(end, after)
	}
	if k.Failed {
		line("end", end, `,"error":"out of memory"`)
	} else {
		line("end", end, "")
	}
	response, err := http.Post("http://"+s.Endpoint+"/v1/tokens", "application/x-ndjson", strings.NewReader(body.String()))
	if err != nil {
		return sent, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return sent, err
	}
	if response.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"rejected":0`)) {
		return sent, fmt.Errorf("%s: %s", response.Status, answer)
	}
	sent.At = time.Now()
	s.Accepted.Add(1)
	return sent, nil
}

// SendAll sends n requests, and checks that each is acknowledged.
func (s *Sender) SendAll(t *testing.T, n int, kinds ...Kind) (all []SentRequest) {
	t.Helper()
	for i := range n {
		sent, err := s.Send(kinds[i%len(kinds)])
		require.NoError(t, err)
		all = append(all, sent)
	}
	return all
}

// BudgetGauge identifies a gauge of one objective: the burn rate over a window, or the
// remaining budget if the window is empty.
type BudgetGauge struct{ Model, SLO, Window string }

// ScrapedGauges returns the gauges of budgets that the exporter serves.
func ScrapedGauges(t *testing.T, c *collector.Collector) map[BudgetGauge]float64 {
	t.Helper()
	gauges, families := map[BudgetGauge]float64{}, exposition.Scrape(t, c)
	for _, family := range []string{"tokenpulse_slo_burn_rate", "tokenpulse_slo_error_budget_remaining"} {
		for _, metric := range families[family].GetMetric() {
			gauges[BudgetGauge{exposition.Label(metric, "gen_ai_request_model"), exposition.Label(metric, "slo"), exposition.Label(metric, "window")}] = metric.GetGauge().GetValue()
		}
	}
	return gauges
}
