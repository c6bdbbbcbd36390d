package series

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

const month = 720 * time.Hour

func withObjectives(o *Options) {
	o.Objectives = []Objective{{SLO: "A", Objective: 0.95, Window: month}, {SLO: names.SLOAll, Objective: 0.9, Window: month}}
}

// saved returns all error budgets, by series.
func (e *Engine) saved() map[string][]byte {
	all := map[string][]byte{}
	e.Budgets(func(key string, _ BudgetsVersion, appendBinary func([]byte) []byte) {
		all[key] = appendBinary(nil)
	})
	return all
}

// restarted returns a new engine that goes on with the budgets of another at a time.
func (e *Engine) restarted(t *testing.T, now time.Time, change func(*Options)) *Engine {
	t.Helper()
	next := newTestEngine(change)
	next.calendar.epoch = now
	for key, encoded := range e.saved() {
		require.NoError(t, next.Restore(key, encoded, now))
	}
	return next
}

// Random requests of several series, with quiet times in which series expire and
// with restarts, against an engine that lives on and never expires anything.
func TestBudgetsOutliveSeriesAndRestarts(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 4))
		short := func(o *Options) { withObjectives(o); o.Series.SeriesExpiration = 10 * time.Minute }
		whole := newTestEngine(func(o *Options) { withObjectives(o); o.Series.SeriesExpiration = 0 })
		e := newTestEngine(short)
		now, begin := time.Duration(0), whole.at(0)
		for range 400 {
			step := []time.Duration{time.Minute, time.Hour}[random.IntN(10)/9]
			now += time.Duration(random.Int64N(int64(step)))
			model := fmt.Sprint("m", random.IntN(3))
			for _, engine := range []*Engine{whole, e} {
				r := judged(begin.Add(now), []string{"gA", "bA", "nA", "gB"}[now%4])
				r.Dimensions = []string{model}
				engine.Record(r)
			}
			switch random.IntN(20) {
			case 0:
				e.Expire(begin.Add(now))
			case 1:
				now += time.Minute
				e = e.restarted(t, begin.Add(now), short)
			}
			want, got := whole.slos(begin.Add(now), model), e.slos(begin.Add(now), model)
			for name, s := range got {
				require.Equal(t, want[name].Recent, s.Recent, "seed %d: %s of %s after %v", seed, name, model, now)
			}
		}
	}
}

// A series that had a request lately is there at once, and counts from zero: what
// it counted before is in the storage of whoever scraped it.
func TestRestoredSeries(t *testing.T) {
	e := newTestEngine(withObjectives)
	e.Record(judged(e.at(0), "bA"))
	e.Record(judged(e.at(time.Minute), "gA"))
	now := e.at(2 * time.Minute)
	next := e.restarted(t, now, withObjectives)
	both := slo.Counts{Good: 1, Bad: 1}
	require.Equal(t, SLOSnapshot{
		Name: "A", Start: now, Objective: 0.95,
		Recent: slo.Recent{Burn: [5]slo.Counts{both, both, both, both, both}, Budget: both},
	}, next.slos(now, "m")["A"])
	require.Len(t, next.slos(now, "m"), 2)

	expired, _ := next.Expire(now.Add(59*time.Minute + time.Second))
	require.Equal(t, 1, expired, "an hour after its last request, not after the restart")
}

func TestRestoredSeriesThatWasQuietIsRemembered(t *testing.T) {
	e := newTestEngine(withObjectives)
	e.Record(judged(e.at(0), "bA"))
	now := e.at(2 * time.Hour)
	next := e.restarted(t, now, withObjectives)
	require.Zero(t, next.Held())
	next.Record(judged(now, "gA"))
	require.Equal(t, slo.Counts{Good: 1, Bad: 1}, next.slos(now, "m")["A"].Recent.Budget)
}

func TestRestoredSeriesOfAnotherConfiguration(t *testing.T) {
	e := newTestEngine(withObjectives)
	e.Record(judged(e.at(0), "bA"))
	now := e.at(time.Minute)

	none := e.restarted(t, now, nil)
	require.Zero(t, none.Held(), "no objective any more")

	other := e.restarted(t, now, func(o *Options) {
		o.Objectives = []Objective{{SLO: "A", Objective: 0.5, Window: 2 * month}}
	})
	a := other.slos(now, "m")["A"]
	require.Equal(t, 0.5, a.Objective)
	require.Equal(t, slo.Counts{Bad: 1}, a.Recent.Burn[4], "burn rates go on")
	require.Zero(t, a.Recent.Budget, "a budget of another window begins anew")
	require.NotContains(t, other.slos(now, "m"), names.SLOAll)

	var refused error
	for key, encoded := range e.saved() {
		two := newTestEngine(func(o *Options) { withObjectives(o); o.Series.Dimensions = []string{"model", "service"} })
		refused = two.Restore(key, encoded, now)
	}
	require.ErrorContains(t, refused, "malformed identity")
}

func TestMalformedBudgetsAreRefused(t *testing.T) {
	e := newTestEngine(withObjectives)
	e.Record(judged(e.at(0), "bA"))
	for key, encoded := range e.saved() {
		for length := range encoded {
			next := newTestEngine(withObjectives)
			if err := next.Restore(key, encoded[:length], e.at(0)); err == nil {
				require.NotContains(t, next.slos(e.at(0), "m"), names.SLOAll, "%d of %d bytes hold one of two", length, len(encoded))
			}
		}
		require.Error(t, newTestEngine(withObjectives).Restore(key[:len(key)-1], encoded, e.at(0)))
	}
}

func TestBudgetsThatAreOverAreForgotten(t *testing.T) {
	e := newTestEngine(withObjectives)
	e.Record(judged(e.at(0), "bA"))
	e.Expire(e.at(2 * time.Hour))
	e.Expire(e.at(month))
	require.Len(t, e.saved(), 1)
	e.Expire(e.at(month + time.Hour))
	require.Empty(t, e.saved())
}

// No more budgets are remembered than there may be series: the quietest go first.
func TestTooManyBudgetsAreForgotten(t *testing.T) {
	e := newTestEngine(func(o *Options) { withObjectives(o); o.Series.MaxSeries = 3 })
	forgotten := 0
	for i := range 5 {
		now := e.at(time.Duration(i) * 2 * time.Hour)
		r := judged(now, "bA")
		r.Dimensions = []string{strconv.Itoa(i)}
		e.Record(r)
		_, n := e.Expire(now.Add(90 * time.Minute))
		forgotten += n
	}
	require.Equal(t, 2, forgotten)
	var models []string
	for key := range e.saved() {
		models = append(models, IdentityOf(key).Dimensions[0])
	}
	require.ElementsMatch(t, []string{"2", "3", "4"}, models)
	_, n := e.Expire(e.at(20 * time.Hour))
	require.Zero(t, n, "each is told of once")
}

func TestNoMoreSeriesAreRestoredThanThereMayBe(t *testing.T) {
	e := newTestEngine(withObjectives)
	for i := range 5 {
		r := judged(e.at(0), "bA")
		r.Dimensions = []string{strconv.Itoa(i)}
		e.Record(r)
	}
	now := e.at(time.Minute)
	next := e.restarted(t, now, func(o *Options) { withObjectives(o); o.Series.MaxSeries = 2 })
	require.Equal(t, 2, next.Held())
	_, forgotten := next.Expire(now)
	require.Equal(t, 1, forgotten)
	require.Len(t, next.saved(), 4, "two are remembered")
}

func TestOverflowSeriesIsRestored(t *testing.T) {
	one := func(o *Options) { withObjectives(o); o.Series.MaxSeries = 1 }
	e := newTestEngine(one)
	e.Record(judged(e.at(0), "gA"))
	other := judged(e.at(0), "bA")
	other.Dimensions = []string{"n"}
	e.Record(other)
	now := e.at(time.Minute)
	next := e.restarted(t, now, one)
	require.Equal(t, 1, next.Held())
	var bad []uint64
	next.Collect(now, func(s *Snapshot) {
		if s.Overflow {
			bad = append(bad, s.SLOs[0].Recent.Budget.Bad)
		}
	})
	require.Equal(t, []uint64{1}, bad)
}

// The clock was ahead when the budgets were saved.
func TestRestoredSeriesOfTheFutureExpires(t *testing.T) {
	e := newTestEngine(withObjectives)
	e.Record(judged(e.at(10*time.Hour), "bA"))
	next := e.restarted(t, e.at(0), withObjectives)
	require.Equal(t, 1, next.Held())
	expired, _ := next.Expire(e.at(time.Hour + time.Second))
	require.Equal(t, 1, expired)
}

// A version changes with each request that counts, and not otherwise.
func TestVersionsOfBudgets(t *testing.T) {
	e := newTestEngine(withObjectives)
	versions := func() (all []BudgetsVersion) {
		e.Budgets(func(_ string, v BudgetsVersion, _ func([]byte) []byte) { all = append(all, v) })
		return all
	}
	e.Record(judged(e.at(0), "gB"))
	first := versions()
	require.Len(t, first, 1, "all has an objective")
	e.slos(e.at(time.Hour), "m")
	require.Equal(t, first, versions())
	e.Record(judged(e.at(0), "nA"))
	require.Equal(t, first, versions())
	e.Expire(e.at(2 * time.Hour))
	require.Equal(t, first, versions(), "remembered as they are")
	e.Record(judged(e.at(2*time.Hour), "gB"))
	require.NotEqual(t, first, versions())
	require.Len(t, versions(), 1)
}
