// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// inJSON returns what the API answers for a value.
func inJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

func TestOpenStreams_AreTheSumOverTheReceiversOrNull(t *testing.T) {
	p := &Page{Options: Options{OpenStreams: new(inprocess.Registry[inprocess.VisitOpenStreams])}}
	requireShown := func(open, silent, why string) {
		t.Helper()
		gotOpen, gotSilent := p.openStreams()
		require.Equal(t, open, inJSON(t, gotOpen), why)
		require.Equal(t, silent, inJSON(t, gotSilent), why)
	}
	requireShown("null", "null", "no receiver")
	stream, tap := new([]inprocess.OpenStream), new([]inprocess.OpenStream)
	for _, streams := range []*[]inprocess.OpenStream{stream, tap} {
		p.OpenStreams.Set(streams, func(_ series.Dimensions, visit func(*inprocess.OpenStream)) {
			for i := range *streams {
				visit(&(*streams)[i])
			}
		})
	}
	requireShown("0", "0", "receivers without streams")
	*stream = []inprocess.OpenStream{{Decoding: true, Silent: 15 * time.Second}, {Silent: time.Hour}}
	*tap = []inprocess.OpenStream{{Decoding: true, Silent: 15*time.Second + 1}, {Decoding: true}, {Decoding: true, Silent: time.Hour}}
	requireShown("5", "2", "a stream that waits for its first token does not hang")
	p.OpenStreams.Remove(stream)
	requireShown("3", "2", "a receiver was shut down")
	p.OpenStreams.Remove(tap)
	requireShown("null", "null", "no receiver")
}

func TestThreshold_IsTheConfiguredOneOrElseThatOfABreach(t *testing.T) {
	p := &Page{Options: Options{Thresholds: new(Thresholds), SLOs: new(inprocess.Registry[[]slo.Definition])}}
	for _, name := range []string{"own", "two-pipelines", "ambiguous", "elsewhere"} {
		p.Thresholds.Set(name, "request.duration", 9) // as breaches say
	}
	p.Thresholds.Set("elsewhere-outcome", "outcome", math.NaN())
	same := slo.Definition{Name: "two-pipelines", Indicator: "time_to_first_token", Threshold: 2}
	long := strings.Repeat("x", 300)
	p.SLOs.Set(new(int), []slo.Definition{
		{Name: "own", Indicator: "time_to_first_token", Threshold: 1},
		same,
		{Name: "ambiguous", Indicator: "time_to_first_token", Threshold: 3},
		{Name: "outcome", Indicator: "outcome"},
		{Name: long, Indicator: "stall.count", Threshold: 5},
	})
	p.SLOs.Set(new(int), []slo.Definition{same, {Name: "ambiguous", Indicator: "time_to_first_token", Threshold: 4}})
	for name, want := range map[string]string{
		"own":               `["time_to_first_token",1]`,
		"two-pipelines":     `["time_to_first_token",2]`,
		"ambiguous":         `["request.duration",9]`,
		"elsewhere":         `["request.duration",9]`,
		"elsewhere-outcome": `["outcome",null]`,
		"outcome":           `["outcome",null]`,
		"unknown":           `[null,null]`,
		long[:256]:          `["stall.count",5]`, // as labels are cut
	} {
		indicator, threshold := p.threshold(p.definitions(), name)
		require.Equal(t, want, inJSON(t, []any{indicator, threshold}), name)
	}
}
