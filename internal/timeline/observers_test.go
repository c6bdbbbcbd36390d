// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// The rule is in definitions.md: the outermost with at least half as many requests as the fullest.
func TestRequests_ShownIsTheOutermostWithHalfOfTheFullest(t *testing.T) {
	const unknown, client, gateway, server, engine = timeline.VantageUnspecified, timeline.VantageClient, timeline.VantageGateway, timeline.VantageServer, timeline.VantageEngine
	for name, c := range map[string]struct {
		requests timeline.Requests
		shown    timeline.Vantage
	}{
		"none":                           {},
		"of unknown vantages only":       {timeline.Requests{unknown: 9}, unknown},
		"of one vantage":                 {timeline.Requests{engine: 1}, engine},
		"all seen by client and engine":  {timeline.Requests{client: 7, engine: 7}, client},
		"half of the clients are known":  {timeline.Requests{client: 5, engine: 10}, client},
		"less than half are known":       {timeline.Requests{client: 4, engine: 9}, engine},
		"the middle one is enough":       {timeline.Requests{client: 1, gateway: 5, engine: 10}, gateway},
		"unknown ones are not the most":  {timeline.Requests{unknown: 90, client: 3, engine: 6}, client},
		"the fullest is the outer one":   {timeline.Requests{server: 10, engine: 4}, server},
		"the fullest is not the deepest": {timeline.Requests{client: 2, server: 10, engine: 9}, server},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.shown, c.requests.Shown()) })
	}
}
