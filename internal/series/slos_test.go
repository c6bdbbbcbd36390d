package series

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// tally counts requests that are not eligible, good and bad.
type tally [3]uint64

// judged returns a request with the verdicts of some objectives. Those are named
// by what they say: "b" is bad, "g" good, all else not eligible.
func judged(arrival time.Time, slos ...string) *Request {
	r := request("m", arrival)
	for _, slo := range slos {
		switch slo[0] {
		case 'b':
			r.Verdicts.Add(slo[1:], Bad)
		case 'g':
			r.Verdicts.Add(slo[1:], Good)
		default:
			r.Verdicts.Add(slo[1:], NotEligible)
		}
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

func TestVerdictsAreCounted(t *testing.T) {
	notEligible, good, bad := tally{1, 0, 0}, tally{0, 1, 0}, tally{0, 0, 1}
	long := strings.Repeat("x", MaxLabelLength)
	tests := map[string]struct {
		slos    []string
		want    map[string]tally
		dropped int
	}{
		"none applies":                      {nil, map[string]tally{}, 0},
		"one is met":                        {[]string{"gA"}, map[string]tally{"all": good, "A": good}, 0},
		"one is breached":                   {[]string{"bA"}, map[string]tally{"all": bad, "A": bad}, 0},
		"it is not eligible":                {[]string{"nA"}, map[string]tally{"all": notEligible, "A": notEligible}, 0},
		"one of two is breached":            {[]string{"gA", "bB"}, map[string]tally{"all": bad, "A": good, "B": bad}, 0},
		"breached, and not eligible":        {[]string{"nA", "bB"}, map[string]tally{"all": bad, "A": notEligible, "B": bad}, 0},
		"met, and not eligible":             {[]string{"gA", "nB"}, map[string]tally{"all": good, "A": good, "B": notEligible}, 0},
		"named twice: counts once":          {[]string{"gA", "gA"}, map[string]tally{"all": good, "A": good}, 0},
		"named twice: the worse counts":     {[]string{"gA", "bA", "nA"}, map[string]tally{"all": bad, "A": bad}, 0},
		"named twice: good over ineligible": {[]string{"nA", "gA"}, map[string]tally{"all": good, "A": good}, 0},
		"names that are one when cut off":   {[]string{"g" + long + "1", "b" + long + "2"}, map[string]tally{"all": bad, long: bad}, 0},
		"bytes that are no UTF-8":           {[]string{"gA\xff"}, map[string]tally{"all": good, "A?": good}, 0},
		"the name that stands for all":      {[]string{"gA", "ball"}, map[string]tally{"all": bad, "A": good}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newTestEngine(nil)
			require.Equal(t, test.dropped, e.Record(judged(e.at(0), test.slos...)).DroppedVerdicts)
			require.Equal(t, test.want, e.tallies(e.at(0)))
		})
	}
}

func TestObjectivesPastTheLimitCountForAll(t *testing.T) {
	e := newTestEngine(nil)
	for i := range 100 {
		dropped := e.Record(judged(e.at(0), fmt.Sprintf("gslo-%02d", i))).DroppedVerdicts
		require.Equal(t, i >= 64, dropped == 1, i)
	}
	require.Zero(t, e.Record(judged(e.at(0), "bslo-63")).DroppedVerdicts, "those that are there go on")
	all := e.tallies(e.at(0))
	require.Len(t, all, 65)
	require.Equal(t, tally{0, 100, 1}, all[names.SLOAll])
	require.Equal(t, tally{0, 1, 1}, all["slo-63"])

	var many []string
	for i := range 70 {
		many = append(many, fmt.Sprint("g", i))
	}
	many = append(many, "blast") // has no count of its own, and says what all is
	e = newTestEngine(nil)
	require.Equal(t, 7, e.Record(judged(e.at(0), many...)).DroppedVerdicts)
	require.Len(t, e.tallies(e.at(0)), 65)
	require.Equal(t, tally{0, 0, 1}, e.tallies(e.at(0))[names.SLOAll])
}

func TestResetVerdictsAreGone(t *testing.T) {
	r := judged(time.Time{}, "bA", "ball")
	r.Verdicts.Drop(3)
	r.Verdicts.Reset()
	e := newTestEngine(nil)
	r.Arrival = e.at(0)
	require.Zero(t, e.Record(r).DroppedVerdicts)
	require.Empty(t, e.slos(e.at(0), "m"))
	r.Verdicts.Add("B", NotEligible)
	e.Record(r)
	require.Equal(t, map[string]tally{"all": {1, 0, 0}, "B": {1, 0, 0}}, e.tallies(e.at(0)))
}

func TestObjectivesHaveARecentPast(t *testing.T) {
	e := newTestEngine(func(o *Options) {
		o.Objectives = []Objective{{SLO: "A\xff", Objective: 0.95, Window: 2 * time.Hour}, {SLO: names.SLOAll, Objective: 0.5, Window: time.Hour}}
	})
	e.Record(judged(e.at(0), "gA\xff", "bB"))
	e.Record(judged(e.at(time.Minute), "nA\xff"))
	e.Record(judged(e.at(59*time.Minute), "bA\xff"))

	all := e.slos(e.at(59*time.Minute), "m")
	require.Equal(t, SLOSnapshot{Name: "B", Start: e.at(0), Requests: tally{0, 0, 1}}, all["B"], "no objective")
	both, recent := slo.Counts{Good: 1, Bad: 1}, slo.Counts{Bad: 1}
	require.Equal(t, SLOSnapshot{
		Name: "A?", Start: e.at(0), Requests: tally{1, 1, 1}, Objective: 0.95,
		Recent: slo.Recent{Burn: [5]slo.Counts{recent, recent, both, both, both}, Budget: both},
	}, all["A?"])
	require.Equal(t, 0.5, all[names.SLOAll].Objective)
	require.Equal(t, slo.Counts{Bad: 2}, all[names.SLOAll].Recent.Budget)

	later := e.slos(e.at(time.Hour), "m")
	require.Equal(t, both, later["A?"].Recent.Budget, "the budget of two hours")
	require.Equal(t, recent, later["A?"].Recent.Burn[2])
	require.Equal(t, slo.Counts{Bad: 1}, later[names.SLOAll].Recent.Budget, "that of one hour has moved on")
	require.Equal(t, slo.Recent{Burn: [5]slo.Counts{4: both}}, e.slos(e.at(7*time.Hour), "m")["A?"].Recent)
}

// A snapshot is used for one series after the other.
func TestObjectivesDoNotLeakIntoOtherSeries(t *testing.T) {
	e := newTestEngine(nil)
	e.Record(judged(e.at(0), "bA", "gB"))
	other := request("n", e.at(0))
	e.Record(other)
	require.Len(t, e.slos(e.at(0), "m"), 3)
	require.Empty(t, e.slos(e.at(0), "n"))
}

// Random verdicts, against a plain list of the requests.
func TestVerdictsAgreeWithAList(t *testing.T) {
	type told struct {
		at       time.Duration
		verdicts map[string]byte
	}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 2))
		e := newTestEngine(func(o *Options) {
			o.Objectives = []Objective{{SLO: "A", Objective: 0.9, Window: 3 * time.Hour}, {SLO: names.SLOAll, Objective: 0.9, Window: 3 * time.Hour}}
		})
		var list []told
		now := time.Duration(0)
		for range 500 {
			now += time.Duration(random.Int64N(int64(time.Minute)))
			this := told{now, map[string]byte{}}
			var slos []string
			for _, name := range []string{"A", "B", "C"} {
				if random.IntN(3) > 0 {
					this.verdicts[name] = "ngb"[random.IntN(3)]
					slos = append(slos, string(this.verdicts[name])+name)
				}
			}
			random.Shuffle(len(slos), func(i, j int) { slos[i], slos[j] = slos[j], slos[i] })
			list = append(list, this)
			e.Record(judged(e.at(now), slos...))
		}
		count := func(name string, from time.Duration) (c tally) {
			for _, r := range list {
				if r.at < from {
					continue
				}
				verdicts := string(slices.Collect(maps.Values(r.verdicts)))
				if name != names.SLOAll {
					verdicts = string(bytesOf(r.verdicts, name))
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
		all := e.slos(e.at(now), "m")
		for _, name := range []string{"A", "B", "C", names.SLOAll} {
			require.EqualValues(t, count(name, 0), all[name].Requests, name)
		}
		for _, name := range []string{"A", names.SLOAll} {
			step := 3 * time.Minute
			budget := count(name, now-now%step-59*step)
			require.Equal(t, slo.Counts{Good: budget[1], Bad: budget[2]}, all[name].Recent.Budget, name)
			hour := count(name, now-now%time.Minute-59*time.Minute)
			require.Equal(t, slo.Counts{Good: hour[1], Bad: hour[2]}, all[name].Recent.Burn[2], name)
		}
	}
}

func bytesOf(verdicts map[string]byte, name string) []byte {
	if v, there := verdicts[name]; there {
		return []byte{v}
	}
	return nil
}

// Writers and readers at once; at the end every verdict is there, and in between
// no snapshot is of half a request.
func TestConcurrentVerdictsLoseNothing(t *testing.T) {
	const writers, each = 4, 2000
	e := newTestEngine(func(o *Options) {
		o.Objectives = []Objective{{SLO: "A", Objective: 0.9, Window: 24 * time.Hour}}
	})
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				all := e.slos(e.at(0), "m")
				if a := all["A"]; a.Requests[Good] != a.Recent.Budget.Good || a.Requests != all[names.SLOAll].Requests {
					t.Errorf("%v of %v", a, all)
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
	all := e.slos(e.at(each*time.Second), "m")
	require.Equal(t, tally{writers * 666, writers * 667, writers * 667}, tally(all["A"].Requests))
	require.Equal(t, slo.Counts{Good: writers * 667, Bad: writers * 667}, all["A"].Recent.Budget)
}

func TestObjectiveMistakesAreNamed(t *testing.T) {
	tests := map[string]struct {
		objective Objective
		want      string // empty: valid
	}{
		"a good one":      {Objective{SLO: "B", Objective: 0.95, Window: 720 * time.Hour}, ""},
		"all together":    {Objective{SLO: "all", Objective: 0.95, Window: 720 * time.Hour}, ""},
		"shortest window": {Objective{SLO: "B", Objective: 0.95, Window: time.Hour}, ""},
		"longest window":  {Objective{SLO: "B", Objective: 0.95, Window: 2160 * time.Hour}, ""},
		"no name":         {Objective{Objective: 0.95, Window: time.Hour}, "`objectives::1::slo` is empty: it needs a name from `slos`"},
		"a name twice":    {Objective{SLO: "A", Objective: 0.95, Window: time.Hour}, "`objectives::1::slo` is \"A\", which has an objective at `objectives::0`: leave one out"},
		"zero":            {Objective{SLO: "B", Window: time.Hour}, "`objectives::1::objective` is 0: it is the share"},
		"one":             {Objective{SLO: "B", Objective: 1, Window: time.Hour}, "`objectives::1::objective` is 1:"},
		"percent":         {Objective{SLO: "B", Objective: 95, Window: time.Hour}, "`objectives::1::objective` is 95: it is the share of requests that are to be good, over 0 and under 1, such as 0.95"},
		"no number":       {Objective{SLO: "B", Objective: math.NaN(), Window: time.Hour}, "`objectives::1::objective` is NaN"},
		"too short":       {Objective{SLO: "B", Objective: 0.95, Window: time.Hour - 1}, "`objectives::1::window` is 59m59.999999999s: it must be from 1h to 2160h"},
		"too long":        {Objective{SLO: "B", Objective: 0.95, Window: 2160*time.Hour + 1}, "`objectives::1::window` is 2160h0m0.000000001s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := errors.Join(ObjectiveProblems([]Objective{{SLO: "A", Objective: 0.5, Window: time.Hour}, test.objective})...)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
	require.ErrorContains(t, errors.Join(ObjectiveProblems(make([]Objective, 65))...), "`objectives` has 65 entries: at most 64")
}

func TestObjectiveWindowInDaysIsToldTheRemedy(t *testing.T) {
	var c struct {
		Objectives []Objective `mapstructure:"objectives"`
	}
	objective := map[string]any{"slo": "a", "objective": 0.9, "window": "30d"}
	conf := confmap.NewFromStringMap(map[string]any{"objectives": []any{objective}})
	require.ErrorContains(t, conf.Unmarshal(&c), "`window` is \"30d\": give hours, such as 720h for 30 days")
	objective["window"] = "48h"
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"objectives": []any{objective}}).Unmarshal(&c))
	require.Equal(t, 48*time.Hour, c.Objectives[0].Window)
	delete(objective, "window")
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"objectives": []any{objective}}).Unmarshal(&c))
	require.Equal(t, 720*time.Hour, c.Objectives[0].Window)
}
