// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

func standard(o *Options) {
	o.Conventions = conventions.Config{GenAI: []string{"latest"}, Attributes: []string{"gen_ai.request.model"}}
}

// standardRequest returns a request with the attributes of standard.
func standardRequest(model string, arrival time.Time) *Contribution {
	r := request("ours", arrival)
	r.Standard = []string{model, "", ""}
	r.SetValue(numbers.RequestDuration, 2)
	return r
}

// durations returns the requests of each standard series, with its start, by its key. One without a request yet is left out.
func (e *Engine) durations() map[string]string {
	all := map[string]string{}
	e.Standard.Collect(func(s *StandardSnapshot) {
		if len(s.Metrics) == 0 {
			return
		}
		of := LabelsOf(s.Key)
		key := "overflow"
		if !of.Overflow {
			key = of.Dimensions[0]
		}
		all[key] = s.Start.Sub(e.calendar.epoch).String() + " " + strconv.FormatUint(s.Metrics[0].Distribution.Sketch.Count(), 10)
	})
	return all
}

func TestStandard_RemovesIdleSeries(t *testing.T) {
	e := newTestEngine(func(o *Options) { standard(o); o.Config.SeriesExpiration = time.Minute })
	e.Record(standardRequest("a", e.at(0)))
	e.Record(standardRequest("b", e.at(40*time.Second)))
	h := NewHandle(standardRequest("c", e.at(0)))
	e.RecordTo(h, standardRequest("c", e.at(0)))
	require.Equal(t, 0, e.Expire(e.at(90*time.Second)), "our series was used")
	require.Equal(t, map[string]string{"b": "40s 1"}, e.durations())
	require.Equal(t, 1, e.Standard.Held())
	e.RecordTo(h, standardRequest("c", e.at(95*time.Second)))
	require.Equal(t, map[string]string{"b": "40s 1", "c": "1m35s 1"}, e.durations())
}

// No attribute of the conventions names a sender, so one value may open all series.
func TestStandard_OneValueMayOpenAllSeries(t *testing.T) {
	e := newTestEngine(func(o *Options) {
		standard(o)
		o.Conventions.Attributes = nil
		o.Config.MaxSeries = 4
	})
	for i := range 6 {
		r := standardRequest("", e.at(0))
		r.Standard = []string{"chat", "vllm", strconv.Itoa(i), "", "", "", "", ""}
		e.Record(r)
	}
	require.Equal(t, 4, e.Standard.Held())
	require.EqualValues(t, 2, e.Standard.Overflow())
}

func TestStandard_OpensNoSeriesWithoutAMetric(t *testing.T) {
	e := newTestEngine(func(o *Options) {
		standard(o)
		for _, name := range conventions.Names("latest") {
			o.Metrics[name] = name == "gen_ai.server.request.duration"
		}
	})
	r := standardRequest("a", e.at(0))
	r.Vantage = "client"
	e.Record(r)
	require.Equal(t, 0, e.Standard.Held())
	e.Record(standardRequest("b", e.at(0)))
	require.Equal(t, map[string]string{"b": "0s 1"}, e.durations())
}

func TestStandard_NumbersOfTracesAreNoRequests(t *testing.T) {
	e := newTestEngine(standard)
	r := standardRequest("a", e.at(0))
	r.TraceOnly = true
	e.Record(r)
	require.Empty(t, e.durations())
}

// Run with the race detector.
func TestStandard_RecordsWhileCollected(t *testing.T) {
	e := newTestEngine(standard)
	h := NewHandle(standardRequest("a", e.at(0)))
	var recording sync.WaitGroup
	for range 4 {
		recording.Go(func() {
			for range 100 {
				e.RecordTo(h, standardRequest("a", e.at(0)))
			}
		})
	}
	for range 20 {
		e.durations()
	}
	recording.Wait()
	require.Equal(t, map[string]string{"a": "0s 400"}, e.durations())
}
