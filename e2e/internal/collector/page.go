// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// AskPage decodes an answer of the live page's API.
func (c *Collector) AskPage(t *testing.T, query string, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(Get(t, c.PageURL("api/v1/"+query), "application/json"), into))
}

// PageURL returns the address of a path of the live page.
func (c *Collector) PageURL(query string) string { return "http://" + c.Metrics + "/" + query }

// LivePageAnswer is what the test reads of the page's API.
type LivePageAnswer struct {
	Requests   map[string]int
	Tokens     map[string]float64
	Stalls     struct{ Count, Seconds float64 }
	Indicators map[string]map[string]float64
	Unmeasured []struct {
		Indicator, Reason string
		Requests          int
	}
	SLOs []struct {
		SLO, Indicator       string
		Threshold, Objective float64
		Good, Bad            int
		NotEligible          int     `json:"not_eligible"`
		BudgetRemaining      float64 `json:"budget_remaining"`
		BurnRates            []struct {
			WindowSeconds float64 `json:"window_seconds"`
			Rate          float64
		} `json:"burn_rates"`
	}
}

// HistoryRequests returns the requests of an hour, and their times to first token.
func HistoryRequests(t *testing.T, c *Collector) (requests int, toFirst map[string]float64) {
	t.Helper()
	var now LivePageAnswer
	c.AskPage(t, "now?range=1h", &now)
	for _, n := range now.Requests {
		requests += n
	}
	return requests, now.Indicators["time_to_first_token"]
}
