// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package openstreams

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// harness is a counter of the streams of receivers that the test sets.
type harness struct {
	*Counter
	receivers [2][]inprocess.OpenStream
	now       time.Time
}

func newHarness(maxSeries int, expiration time.Duration) *harness {
	h := &harness{now: time.Unix(1000, 0)}
	config := &series.Config{Dimensions: series.DimensionsOf("model"), MaxSeries: maxSeries, SeriesExpiration: expiration}
	h.Counter = New(config, func() (all []inprocess.VisitOpenStreams) {
		for _, streams := range h.receivers {
			all = append(all, func(labels inprocess.Labels, visit func(*inprocess.OpenStream)) {
				values := labels.Values()
				labels.Read(values, "model", pcommon.NewValueStr("of the config"))
				if !slices.Equal(values, []string{"of the config"}) {
					panic(values)
				}
				for _, s := range streams {
					visit(&s)
				}
			})
		}
		return all
	})
	return h
}

func (h *harness) collect() (lines []string, overflow bool) {
	overflow = h.Collect(h.now, func(s *Sample) {
		of := series.LabelsOf(s.Key)
		name := of.Vantage + "/" + strings.Join(of.Dimensions, "")
		if of.Overflow {
			name = "overflow"
		}
		lines = append(lines, fmt.Sprint(name, " ", s.Phase, " ", s.Silent, " ", s.Streams))
	})
	return lines, overflow
}

func (h *harness) require(t *testing.T, overflow bool, want ...string) {
	t.Helper()
	got, full := h.collect()
	require.Equal(t, want, got)
	require.Equal(t, overflow, full)
}

func stream(model string, decoding bool, silent time.Duration) inprocess.OpenStream {
	return inprocess.OpenStream{Dimensions: []string{model}, Vantage: "server", Decoding: decoding, Silent: silent}
}

// A bound belongs to the band below it, as in a histogram.
func TestCollect_BandsAreNotCumulative(t *testing.T) {
	for silent, band := range map[time.Duration]string{
		0: "1s", time.Second: "1s", time.Second + 1: "5s", 5 * time.Second: "5s", 5*time.Second + 1: "15s",
		15 * time.Second: "15s", 15*time.Second + 1: "60s", time.Minute: "60s", time.Minute + 1: "+Inf", 24 * time.Hour: "+Inf",
	} {
		h := newHarness(10, 0)
		h.receivers[0] = []inprocess.OpenStream{stream("m", true, silent)}
		h.require(t, false, "server/m decode "+band+" 1")
		hangs := band == "60s" || band == "+Inf"
		require.Equal(t, hangs, h.receivers[0][0].Hangs(), silent)
	}
}

func TestCollect_AddsUpReceiversAndShowsZeroUntilTheSeriesExpires(t *testing.T) {
	h := newHarness(10, time.Hour)
	h.require(t, false)
	gateway := stream("a", true, 0)
	gateway.Vantage = "gateway"
	h.receivers = [2][]inprocess.OpenStream{{stream("b", false, time.Second), stream("a", true, 0), stream("a", true, time.Minute)}, {stream("a", true, 0), gateway}}
	h.require(t, false, "server/a decode 1s 2", "server/a decode 60s 1", "gateway/a decode 1s 1", "server/b first_token 1s 1")
	h.receivers = [2][]inprocess.OpenStream{}
	empty := []string{"server/a decode 1s 0", "server/a decode 60s 0", "gateway/a decode 1s 0", "server/b first_token 1s 0"}
	h.require(t, false, empty...)
	h.now = h.now.Add(time.Hour)
	h.require(t, false, empty...)
	h.receivers[1] = []inprocess.OpenStream{stream("a", true, 0)}
	h.require(t, false, "server/a decode 1s 1", "server/a decode 60s 0", "gateway/a decode 1s 0", "server/b first_token 1s 0")
	h.now = h.now.Add(1)
	h.require(t, false, "server/a decode 1s 1")
	require.Len(t, h.series, 1, "expired series are forgotten")

	kept := newHarness(10, 0)
	kept.receivers[0] = []inprocess.OpenStream{stream("a", true, 0)}
	kept.collect()
	kept.receivers[0], kept.now = nil, kept.now.Add(1000*time.Hour)
	kept.require(t, false, "server/a decode 1s 0")
}

func TestCollect_StreamsBeyondMaxSeriesGoToOneSeries(t *testing.T) {
	h := newHarness(2, time.Minute)
	for _, model := range []string{"a", "b", "c", "d", "a"} {
		h.receivers[0] = append(h.receivers[0], stream(model, true, 0))
	}
	h.require(t, true, "overflow decode 1s 2", "server/a decode 1s 2", "server/b decode 1s 1")
	h.receivers[0] = h.receivers[0][2:] // c, d, a
	h.now = h.now.Add(time.Minute)
	h.require(t, true, "overflow decode 1s 2", "server/a decode 1s 1", "server/b decode 1s 0")
	h.now = h.now.Add(1)
	h.require(t, true, "overflow decode 1s 1", "server/a decode 1s 1", "server/c decode 1s 1")
	h.receivers[0] = nil
	h.now = h.now.Add(time.Minute + 1)
	h.require(t, false)
}
