// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// streamsWithNumber sends streams that differ in one number only, and returns their requests by the value of the first
// dimension, and their good verdicts.
func streamsWithNumber(t *testing.T, start, end string, change func(*annotate.Config, *publish.Config)) (requests map[string]uint64, good uint64) {
	t.Helper()
	p := inMetricsPipeline(t, nil, func(c *Config) {
		latency, config := annotate.DefaultConfig(), publish.NewDefaultConfig()
		change(latency, &config)
		c.Latency, c.Series = configoptional.Some(*latency), configoptional.Some(config)
	})
	p.start(t)
	for i, n := range []string{"1", "2", "3", "4", "5", "4"} {
		id := fmt.Sprint("stream-", i)
		ended := fmt.Sprintf(`{"event":"end","stream_id":%q,"time_unix_nano":"%d",%s}`, id, at(time.Second), strings.ReplaceAll(end, "N", n))
		require.Equal(t, 200, p.lines(t, startWith(id, at(0), strings.ReplaceAll(start, "N", n)), chunkLine(id, time.Millisecond), ended).status)
	}
	requests = map[string]uint64{}
	p.publisher.Keeper.Engine.Collect(time.Now(), func(s *series.Snapshot) {
		requests[s.Dimensions[0]] += s.Outcomes[series.Success].Requests
		for i := range s.SLOs {
			if s.SLOs[i].Name == "many" {
				good += s.SLOs[i].Requests[slo.Good]
			}
		}
	})
	return requests, good
}

// The number may be in the attributes of the start, or come with the end.
func TestSeries_NumbersDivideStreamsAndSelectSLOs(t *testing.T) {
	for name, test := range map[string]struct{ attribute, start, end string }{
		"attribute of the start": {"images", `"attributes":{"images":N}`, `"usage":{}`},
		"attribute of the end":   {"images", `"attributes":{}`, `"attributes":{"images":N}`},
		"usage":                  {"gen_ai.usage.input_tokens", `"attributes":{}`, `"usage":{"input_tokens":N}`},
		"usage as an attribute":  {"gen_ai.usage.input_tokens", `"attributes":{"gen_ai.usage.input_tokens":N}`, `"usage":{}`},
	} {
		t.Run(name, func(t *testing.T) {
			requests, _ := streamsWithNumber(t, test.start, test.end, func(_ *annotate.Config, c *publish.Config) {
				c.Shared.Series.Dimensions = series.Dimensions{{Attribute: test.attribute, Bands: []float64{2, 4}, Label: "band"}}
			})
			require.Equal(t, map[string]uint64{"0-2": 1, "2-4": 2, "4+": 3}, requests)
			_, good := streamsWithNumber(t, test.start, test.end, func(c *annotate.Config, _ *publish.Config) {
				c.SLOs = []judge.SLOConfig{{Name: "many", Indicator: "request.duration", Threshold: "2s", MatchRange: map[string]judge.Range{test.attribute: {Min: 4}}}}
			})
			require.EqualValues(t, 3, good)
		})
	}
}
