// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// windowedQuantiles are the quantiles of the engines in these tests.
var windowedQuantiles = []float64{0.5, 0.9, 0.99}

func newTestEngine(change func(*Options)) *Engine {
	o := Options{
		Config:    NewDefaultConfig(),
		Windows:   []time.Duration{time.Minute, 5 * time.Minute, time.Hour},
		Quantiles: windowedQuantiles,
		Metrics:   Selection{},
	}
	for _, name := range MetricNames() {
		o.Metrics[name] = true
	}
	o.Config.Dimensions = DimensionsOf("model")
	if change != nil {
		change(&o)
	}
	e := NewEngine(o)
	e.calendar.epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) // a slot of every window starts here
	return e
}

// at returns a time after the start of the engine's calendar.
func (e *Engine) at(d time.Duration) time.Time { return e.calendar.epoch.Add(d) }

func request(model string, arrival time.Time) *Contribution {
	return &Contribution{Dimensions: []string{model}, Vantage: "server", Arrival: arrival}
}

func answered(model string, arrival time.Time, v float64) *Contribution {
	r := request(model, arrival)
	r.SetValue(numbers.TimeToFirstToken, v)
	return r
}

// collected is the part of a snapshot that tests compare.
type collected struct {
	requests  uint64
	count     uint64
	outcome   Outcome
	start     time.Time
	overflow  bool
	classic   []uint64
	quantiles []Quantile
	exemplars []Exemplar
	tokens    float64
}

// collect returns the series by model. The overflow series has the key "overflow".
func (e *Engine) collect(now time.Time, q numbers.ID) map[string]collected {
	all := map[string]collected{}
	e.Collect(now, func(s *Snapshot) {
		c := collected{start: s.Start, overflow: s.Overflow}
		c.tokens, _ = s.Count(CountOf(numbers.OutputTokens))
		for i := range s.Outcomes {
			o := &s.Outcomes[i]
			c.requests += o.Requests
			if d := &o.Distributions[q]; o.Requests > 0 && d.Sketch.Count() > 0 {
				c.outcome, c.count = Outcome(i), c.count+d.Sketch.Count()
				c.classic = slices.Clone(d.Classic)
				c.quantiles = slices.Clone(d.Quantiles)
				c.exemplars = slices.Clone(d.Exemplars)
			}
		}
		model := "overflow"
		if !s.Overflow {
			model = s.Dimensions[0]
		}
		all[model] = c
	})
	return all
}

func TestRecord_OverflowKeepsTotals(t *testing.T) {
	e := newTestEngine(func(o *Options) { o.Config.MaxSeries = 10 })
	overflowed := 0
	for i := range 10_000 {
		r := answered(fmt.Sprint("model-", i%1000), e.at(0), 0.1)
		r.SetValue(numbers.OutputTokens, 3)
		if e.Record(r).Overflow {
			overflowed++
		}
	}
	require.Equal(t, 9900, overflowed)
	require.Equal(t, 10, e.Held())
	all := e.collect(e.at(0), numbers.TimeToFirstToken)
	require.Len(t, all, 11)
	var requests, values, classic uint64
	var tokens float64
	for _, c := range all {
		requests += c.requests
		values += c.count
		tokens += c.tokens
		for _, n := range c.classic {
			classic += n
		}
	}
	require.EqualValues(t, 10_000, requests)
	require.EqualValues(t, 10_000, values)
	require.EqualValues(t, 10_000, classic)
	require.EqualValues(t, 30_000, tokens)
	require.EqualValues(t, 9900, all["overflow"].requests)
}

func TestExpire_RemovesIdleSeries(t *testing.T) {
	e := newTestEngine(func(o *Options) { o.Config.MaxSeries = 2 })
	for i := range 5 {
		e.Record(answered(fmt.Sprint("model-", i), e.at(0), 0.1))
	}
	e.Record(answered("model-0", e.at(time.Minute), 0.1))
	expired := e.Expire(e.at(time.Hour))
	require.Zero(t, expired, "exactly an hour is not longer than an hour")
	expired = e.Expire(e.at(time.Hour + time.Second))
	require.Equal(t, 2, expired, "model-1 and the overflow series")
	now := e.at(time.Hour + time.Second)
	all := e.collect(now, numbers.TimeToFirstToken)
	require.Len(t, all, 1)
	require.Equal(t, e.at(0), all["model-0"].start)
	require.False(t, e.Record(answered("model-3", now, 0.1)).Overflow, "an expired series makes room")
	e.Record(answered("model-4", now, 0.1))
	again := e.collect(now, numbers.TimeToFirstToken)
	require.Equal(t, now, again["model-3"].start)
	require.Equal(t, now, again["overflow"].start, "a series that comes back starts again")
	require.EqualValues(t, 1, again["overflow"].requests)
}

func TestExpire_ZeroExpirationKeepsSeriesForever(t *testing.T) {
	e := newTestEngine(func(o *Options) { o.Config.SeriesExpiration = 0 })
	e.Record(answered("m", e.at(0), 0.1))
	expired := e.Expire(e.at(100_000 * time.Hour))
	require.Zero(t, expired)
	require.Equal(t, 1, e.Held())
}

func TestRecord_SeparatesOutcomes(t *testing.T) {
	e := newTestEngine(nil)
	for o := range outcomes {
		for range int(o) + 1 {
			r := answered("m", e.at(time.Duration(o)*time.Second), 0.1)
			r.Outcome = o
			e.Record(r)
		}
	}
	e.Collect(e.at(time.Minute), func(s *Snapshot) {
		for o := range outcomes {
			require.EqualValues(t, o+1, s.Outcomes[o].Requests)
			require.EqualValues(t, o+1, s.Outcomes[o].Distributions[numbers.TimeToFirstToken].Sketch.Count())
			require.Equal(t, e.at(time.Duration(o)*time.Second), s.Outcomes[o].Start)
		}
	})
}

// Collect reuses one snapshot for all series.
func TestCollect_SeriesDoNotLeakIntoEachOther(t *testing.T) {
	e := newTestEngine(nil)
	full := answered("a", e.at(0), 0.1)
	full.SetValue(numbers.OutputTokens, 5)
	*full.Distribution(numbers.InterTokenLatency) = distribution(0.1, 0.2)
	full.TraceID[0] = 1
	e.Record(full)
	e.Record(request("b", e.at(0)))
	cancelled := request("c", e.at(0))
	cancelled.Outcome = Cancelled
	e.Record(cancelled)
	for _, q := range []numbers.ID{numbers.TimeToFirstToken, numbers.InterTokenLatency} {
		all := e.collect(e.at(0), q)
		require.NotZero(t, all["a"].count)
		for _, model := range []string{"b", "c"} {
			require.Equal(t, collected{requests: 1, start: e.at(0)}, all[model])
		}
	}
}

// A slow reader must not block requests, neither those of the series that it reads nor
// those of new series.
func TestRecord_DoesNotWaitForReaders(t *testing.T) {
	e := newTestEngine(nil)
	e.Record(answered("a", e.at(0), 0.1))
	visited := 0
	e.Collect(e.at(time.Second), func(s *Snapshot) {
		recorded := make(chan struct{})
		go func() {
			defer close(recorded)
			e.Record(answered("a", e.at(time.Second), 0.1))
			e.Record(answered("b", e.at(time.Second), 0.1))
		}()
		select {
		case <-recorded:
			visited++
		case <-time.After(10 * time.Second):
			t.Error("Record waits for the reader")
		}
		require.EqualValues(t, 1, s.Outcomes[Success].Requests, "requests during the visit are not in the snapshot")
	})
	require.Equal(t, 1, visited)
	require.EqualValues(t, 2, e.collect(e.at(time.Second), numbers.TimeToFirstToken)["a"].requests)
}

// Writers, a reader and Expire run at once. At the end every request is counted.
func TestRecord_ConcurrentUseLosesNothing(t *testing.T) {
	const writers, each = 4, 3000
	e := newTestEngine(func(o *Options) { o.Config.MaxSeries = 8 })
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	reading.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				e.Collect(e.at(time.Duration(i)*time.Second), func(*Snapshot) {})
				e.Expire(e.at(0)) // visits all series and expires no series
			}
		}
	})
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				r := answered(strconv.Itoa(i%12), e.at(time.Duration(i)*10*time.Millisecond), 0.1)
				r.Outcome = Outcome(w)
				r.SetValue(numbers.OutputTokens, 2)
				*r.Distribution(numbers.InterTokenLatency) = distribution(0.01, 0.02, 0.03)
				e.Record(r)
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	var requests, gaps, tokens float64
	e.Collect(e.at(time.Hour), func(s *Snapshot) {
		n, _ := s.Count(CountOf(numbers.OutputTokens))
		tokens += n
		for i := range s.Outcomes {
			if o := &s.Outcomes[i]; o.Requests > 0 {
				requests += float64(o.Requests)
				gaps += float64(o.Distributions[numbers.InterTokenLatency].Sketch.Count())
			}
		}
	})
	require.EqualValues(t, writers*each, requests)
	require.EqualValues(t, 2*writers*each, tokens)
	require.EqualValues(t, 3*writers*each, gaps)
}

// A service that invents models gets half of the series. The others get the rest.
func TestRecord_OneValueOpensHalfOfTheSeries(t *testing.T) {
	e := newTestEngine(func(o *Options) {
		o.Config.Dimensions = DimensionsOf("service", "model")
		o.Config.MaxSeries = 100
	})
	record := func(service string, model int) bool {
		r := answered("", e.at(0), 0.1)
		r.Dimensions = []string{service, fmt.Sprint("model-", model)}
		return e.Record(r).Overflow
	}
	for model := range 2000 {
		require.Equal(t, model >= 50, record("loud", model))
	}
	for service := range 50 {
		require.False(t, record(fmt.Sprint("service-", service), 0))
	}
	require.True(t, record("late", 0), "all series are open")
	require.False(t, record("loud", 49), "open series stay")
	require.Equal(t, 100, e.Held())

	require.Equal(t, 101, e.Expire(e.at(2*time.Hour)))
	require.Empty(t, e.heldBy)
	require.False(t, record("loud", 60), "expired series make room")
}

// A sender that invents services opens its share of the series once half of them are open.
func TestRecord_AClientOpensItsShareOnceHalfOfTheSeriesAreOpen(t *testing.T) {
	e := newTestEngine(func(o *Options) { o.Config.MaxSeries, o.MaxSeriesPerClient = 100, 10 })
	record := func(client string, from, to int) (overflow int) {
		for model := range to - from {
			r := answered(fmt.Sprint(client, "-", from+model), e.at(0), 0.1)
			if client != "" {
				r.Client = &httpguard.Client{Subject: client}
			}
			recorded := e.Record(r)
			require.Equal(t, recorded.Overflow, e.RecordTo(NewHandle(r), r).Overflow)
			if recorded.Overflow {
				overflow++
			}
		}
		return overflow
	}
	require.Equal(t, 149, record("loud", 0, 200), "half is free until 51 series are open")
	require.Equal(t, 1, record("honest", 0, 11))
	require.Equal(t, 1, record("", 0, 40), "unknown clients have no share of their own")
	require.Equal(t, 0, record("loud", 0, 51), "open series stay")
	require.Equal(t, 100, e.Held())

	require.Equal(t, 101, e.Expire(e.at(2*time.Hour)))
	require.Empty(t, e.heldByClient)
	require.Equal(t, 0, record("loud", 100, 151), "expired series make room")
}

func TestRestore_OneValueOpensHalfOfTheSeries(t *testing.T) {
	e := newTestEngine(func(o *Options) { o.Config.MaxSeries = 3 })
	now := e.at(0)
	for vantage := range 3 {
		e.Restore("\x01a\x01"+strconv.Itoa(vantage), nil, now, now)
	}
	require.Equal(t, 2, e.Held())
	e.Restore("\x01b\x00", nil, now, now)
	require.Equal(t, 3, e.Held())
	require.Len(t, e.collect(now, numbers.TimeToFirstToken), 2, "no overflow series")
}

func TestRecord_WithoutDimensionsAllSeriesCanOpen(t *testing.T) {
	e := newTestEngine(func(o *Options) {
		o.Config.Dimensions = nil
		o.Config.MaxSeries = 4
	})
	for vantage := range 4 {
		require.False(t, e.Record(&Contribution{Vantage: strconv.Itoa(vantage), Arrival: e.at(0)}).Overflow)
	}
}

// FuzzRestore opens series of hostile keys, as a damaged storage may hold them. No two
// series have the same labels, and all labels are clean.
func FuzzRestore(f *testing.F) {
	f.Add("\x01a\x00", "slo", int64(0))
	f.Add("", "all", int64(-1))
	f.Add("\x00\x00", "0", int64(1<<62))
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "", int64(1<<62))
	f.Add("\x81\x00m\x06server", "slo", int64(3600e9)) // the length 1 in two bytes
	f.Add("\x01\xff\x00", "slo", int64(3600e9))
	f.Fuzz(func(t *testing.T, key, slo string, lastSeen int64) {
		e := newTestEngine(nil)
		now := e.at(time.Hour)
		if IsKey(key, 1) {
			e.Restore(key, []string{slo, slo, "all"}, e.at(time.Duration(lastSeen)), now)
		}
		e.Record(request("m", now))
		seen := map[string]bool{}
		e.Collect(now, func(s *Snapshot) {
			identity := fmt.Sprintf("%+q %q %t", s.Dimensions, s.Vantage, s.Overflow)
			require.False(t, seen[identity], "two series are %s", identity)
			seen[identity] = true
			for _, label := range append(s.Dimensions, s.Vantage) {
				require.Equal(t, names.CleanLabel(label), label)
			}
		})
		e.Expire(now.Add(24 * time.Hour))
		require.Zero(t, e.Held())
		require.Empty(t, e.heldBy)
	})
}
