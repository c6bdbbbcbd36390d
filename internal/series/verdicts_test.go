// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// tally counts requests by verdict: not eligible, good and bad.
type tally [3]uint64

// judged returns a request with verdicts. Each entry of slos is a verdict and the name of
// an SLO: "b" bad, "g" good, "n" not eligible.
func judged(arrival time.Time, slos ...string) *Contribution {
	r := request("m", arrival)
	for _, name := range slos {
		verdict := slo.NotEligible
		switch name[0] {
		case 'b':
			verdict = slo.Bad
		case 'g':
			verdict = slo.Good
		}
		r.Verdicts.Add(name[1:], verdict)
	}
	return r
}

func (e *Engine) slos(now time.Time, model string) map[string]SLOSnapshot {
	all := map[string]SLOSnapshot{}
	e.Collect(now, func(s *Snapshot) {
		if s.Overflow || s.Dimensions[0] != model {
			return
		}
		for _, slo := range s.SLOs {
			all[slo.Name] = slo
		}
	})
	return all
}

func (e *Engine) tallies(now time.Time) map[string]tally {
	all := map[string]tally{}
	for name, s := range e.slos(now, "m") {
		all[name] = s.Requests
	}
	return all
}

func TestRecord_CountsVerdicts(t *testing.T) {
	notEligible, good, bad := tally{1, 0, 0}, tally{0, 1, 0}, tally{0, 0, 1}
	tests := map[string]struct {
		slos    []string
		want    map[string]tally
		dropped int
	}{
		"no SLO applies":                       {nil, map[string]tally{}, 0},
		"good":                                 {[]string{"gA"}, map[string]tally{"all": good, "A": good}, 0},
		"bad":                                  {[]string{"bA"}, map[string]tally{"all": bad, "A": bad}, 0},
		"not eligible":                         {[]string{"nA"}, map[string]tally{"all": notEligible, "A": notEligible}, 0},
		"good and bad":                         {[]string{"gA", "bB"}, map[string]tally{"all": bad, "A": good, "B": bad}, 0},
		"not eligible and bad":                 {[]string{"nA", "bB"}, map[string]tally{"all": bad, "A": notEligible, "B": bad}, 0},
		"good and not eligible":                {[]string{"gA", "nB"}, map[string]tally{"all": good, "A": good, "B": notEligible}, 0},
		"listed twice: counts once":            {[]string{"gA", "gA"}, map[string]tally{"all": good, "A": good}, 0},
		"listed twice: bad wins":               {[]string{"gA", "bA", "nA"}, map[string]tally{"all": bad, "A": bad}, 0},
		"listed twice: good over not eligible": {[]string{"nA", "gA"}, map[string]tally{"all": good, "A": good}, 0},
		"an SLO named all":                     {[]string{"gA", "ball"}, map[string]tally{"all": bad, "A": good}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newTestEngine(nil)
			require.Equal(t, test.dropped, e.Record(judged(e.at(0), test.slos...)).DroppedVerdicts)
			require.Equal(t, test.want, e.tallies(e.at(0)))
		})
	}
}

func TestRecord_VerdictsBeyondTheLimitCountTowardAll(t *testing.T) {
	e := newTestEngine(nil)
	for i := range 100 {
		dropped := e.Record(judged(e.at(0), fmt.Sprintf("gslo-%02d", i))).DroppedVerdicts
		require.Equal(t, i >= 64, dropped == 1, i)
	}
	require.Zero(t, e.Record(judged(e.at(0), "bslo-63")).DroppedVerdicts, "existing SLOs still count")
	all := e.tallies(e.at(0))
	require.Len(t, all, 65)
	require.Equal(t, tally{0, 100, 1}, all[names.SLOAll])
	require.Equal(t, tally{0, 1, 1}, all["slo-63"])

	var many []string
	for i := range 70 {
		many = append(many, fmt.Sprint("g", i))
	}
	many = append(many, "blast") // dropped, and still makes `all` bad
	e = newTestEngine(nil)
	require.Equal(t, 7, e.Record(judged(e.at(0), many...)).DroppedVerdicts)
	require.Len(t, e.tallies(e.at(0)), 65)
	require.Equal(t, tally{0, 0, 1}, e.tallies(e.at(0))[names.SLOAll])
}

func TestRecord_ResetVerdictsDoNotCount(t *testing.T) {
	r := judged(time.Time{}, "bA", "ball")
	r.Verdicts.Drop(3)
	r.Verdicts.Reset()
	e := newTestEngine(nil)
	r.Arrival = e.at(0)
	require.Zero(t, e.Record(r).DroppedVerdicts)
	require.Empty(t, e.slos(e.at(0), "m"))
	r.Verdicts.Add("B", slo.NotEligible)
	e.Record(r)
	require.Equal(t, map[string]tally{"all": {1, 0, 0}, "B": {1, 0, 0}}, e.tallies(e.at(0)))
}

// Collect reuses one snapshot for all series.
func TestCollect_VerdictsDoNotLeakIntoOtherSeries(t *testing.T) {
	e := newTestEngine(nil)
	e.Record(judged(e.at(0), "bA", "gB"))
	e.Record(request("n", e.at(0)))
	require.Len(t, e.slos(e.at(0), "m"), 3)
	require.Empty(t, e.slos(e.at(0), "n"))
}

// Counters of random verdicts are compared with a list of the requests.
func TestRecord_VerdictsMatchAListOfRequests(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 2))
		e := newTestEngine(nil)
		var list []map[string]byte // verdicts by SLO
		for i := range 500 {
			verdicts := map[string]byte{}
			var slos []string
			for _, name := range []string{"A", "B", "C"} {
				if random.IntN(3) > 0 {
					verdicts[name] = "ngb"[random.IntN(3)]
					slos = append(slos, string(verdicts[name])+name)
				}
			}
			random.Shuffle(len(slos), func(i, j int) { slos[i], slos[j] = slos[j], slos[i] })
			list = append(list, verdicts)
			e.Record(judged(e.at(time.Duration(i)*time.Second), slos...))
		}
		count := func(name string) (c tally) {
			for _, r := range list {
				verdicts := string(slices.Collect(maps.Values(r)))
				if name != names.SLOAll {
					verdicts = strings.Trim(string([]byte{r[name]}), "\x00")
				}
				switch {
				case strings.Contains(verdicts, "b"):
					c[2]++
				case strings.Contains(verdicts, "g"):
					c[1]++
				case verdicts != "":
					c[0]++
				}
			}
			return c
		}
		all := e.tallies(e.at(500 * time.Second))
		for _, name := range []string{"A", "B", "C", names.SLOAll} {
			require.Equal(t, count(name), all[name], name)
		}
	}
}

// Writers and a reader run at once. At the end every verdict is counted, and no snapshot
// has a part of a request.
func TestRecord_ConcurrentVerdictsLoseNothing(t *testing.T) {
	const writers, each = 4, 2000
	e := newTestEngine(nil)
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				all := e.slos(e.at(0), "m")
				if a := all["A"]; a.Requests != all[names.SLOAll].Requests {
					t.Errorf("A has %v, `all` has %v", a.Requests, all[names.SLOAll].Requests)
				}
			}
		}
	})
	for range writers {
		writing.Go(func() {
			for i := range each {
				e.Record(judged(e.at(time.Duration(i)*time.Second), []string{"gA", "bA", "nA"}[i%3]))
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	require.Equal(t, tally{writers * 666, writers * 667, writers * 667}, e.tallies(e.at(each * time.Second))["A"])
}

func TestRestore_SeriesCountsFromZero(t *testing.T) {
	e := newTestEngine(nil)
	now := e.at(time.Hour)
	key := string(request("m", now).AppendKey(nil))
	e.Restore(key, []string{"A", names.SLOAll}, now.Add(-time.Minute), now)
	require.Equal(t, SLOSnapshot{Name: "A", Start: now}, e.slos(now, "m")["A"])
	require.Len(t, e.slos(now, "m"), 2)
	require.Equal(t, 1, e.Expire(now.Add(59*time.Minute+time.Second)), "expires an hour after its last request, not after the restart")
}

func TestRestore_SkipsIdleSeriesAndSeriesBeyondTheLimit(t *testing.T) {
	e := newTestEngine(func(o *Options) { o.Config.MaxSeries = 1 })
	now := e.at(2 * time.Hour)
	e.Restore("\x01a\x00", nil, now.Add(-time.Hour-1), now)
	require.Zero(t, e.Held())
	e.Restore("\x01b\x00", nil, now, now)
	e.Restore("\x01c\x00", nil, now, now)
	require.Equal(t, 1, e.Held())
	e.Restore(overflowKey, []string{"A"}, now, now)
	overflow := 0
	e.Collect(now, func(s *Snapshot) {
		if s.Overflow {
			overflow = len(s.SLOs)
		}
	})
	require.Equal(t, 1, overflow)
}

// Each SLO of a series keeps one exemplar: its latest bad request with a trace.
func TestRecord_KeepsTheLatestBadRequestOfEachSLO(t *testing.T) {
	e := newTestEngine(nil)
	for i, slos := range [][]string{{"bA", "gB"}, {"bA", "nB"}, {"gA", "gB"}, {"bB"}} {
		r := judged(e.at(time.Duration(i)*time.Second), slos...)
		r.TraceID[0], r.SpanID[0] = byte(i+1), byte(i+1)
		e.Record(r)
	}
	e.Record(judged(e.at(9*time.Second), "bA", "bB")) // without a trace
	want := func(i byte) Exemplar {
		return Exemplar{TraceID: [16]byte{i}, SpanID: [8]byte{i}, Value: 1, UnixNano: e.at(time.Duration(i-1) * time.Second).UnixNano()}
	}
	got := e.slos(e.at(9*time.Second), "m")
	require.Equal(t, want(2), got["A"].Bad)
	require.Equal(t, want(4), got["B"].Bad)
	require.Equal(t, want(4), got["all"].Bad)
}

func TestRecord_SLORequestsOffCountsNothing(t *testing.T) {
	e := newTestEngine(allOff(names.Requests))
	require.Zero(t, e.Record(judged(e.at(0), "bA", "ball")).DroppedVerdicts)
	e.Restore("\x01r\x00", []string{"A"}, e.at(0), e.at(0))
	require.Empty(t, e.slos(e.at(0), "m"))
	require.Empty(t, e.slos(e.at(0), "r"))
}
