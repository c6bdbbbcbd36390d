package series

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// windowedQuantiles are those of the tests' engines.
var windowedQuantiles = []float64{0.5, 0.9, 0.99}

func newTestEngine(change func(*Options)) *Engine {
	o := Options{
		Config:    NewDefaultConfig(),
		Windows:   []time.Duration{time.Minute, 5 * time.Minute, time.Hour},
		Quantiles: windowedQuantiles,
	}
	o.Config.Dimensions = []string{"model"}
	if change != nil {
		change(&o)
	}
	e := NewEngine(o)
	e.calendar.epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) // where slots of every width begin
	return e
}

// at is a moment after the engine was made: the clock of these tests.
func (e *Engine) at(d time.Duration) time.Time { return e.calendar.epoch.Add(d) }

func request(model string, arrival time.Time) *Request {
	return &Request{Dimensions: []string{model}, Vantage: "server", Arrival: arrival}
}

func latency(model string, arrival time.Time, v float64) *Request {
	r := request(model, arrival)
	r.SetValue(TimeToFirstToken, v)
	return r
}

// collect returns a copy of what a test looks at, by model.
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

func (e *Engine) collect(now time.Time, q Quantity) map[string]collected {
	all := map[string]collected{}
	e.Collect(now, func(s *Snapshot) {
		c := collected{start: s.Start, overflow: s.Overflow}
		c.tokens, _ = s.Count(OutputTokens)
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

func nearestRank(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Ceil(q*float64(len(sorted))))-1]
}

// Quantiles are those of the values of the window, and values leave it: checked
// against plain slices at many moments, with and without readers in between.
func TestCollect_QuantilesFollowTheirWindow(t *testing.T) {
	type value struct {
		at time.Duration
		v  float64
	}
	for _, readEvery := range []time.Duration{time.Second, 7 * time.Second, 100 * time.Second} {
		t.Run(fmt.Sprintf("read every %v", readEvery), func(t *testing.T) {
			e := newTestEngine(nil)
			random := rand.New(rand.NewPCG(1, 2))
			var all []value
			compared := 0
			for now := time.Duration(0); now < 10*time.Minute; now += 250 * time.Millisecond {
				level := 0.05 + 0.02*math.Floor(now.Minutes()) // each minute is slower than the one before
				v := level * math.Exp(0.3*random.NormFloat64())
				e.Record(latency("m", e.at(now), v))
				all = append(all, value{now, v})
				if now%readEvery != 0 {
					continue
				}
				quantiles := e.collect(e.at(now), TimeToFirstToken)["m"].quantiles
				require.Len(t, quantiles, 3*len(windowedQuantiles))
				for _, q := range quantiles {
					slot := []time.Duration{5 * time.Second, 25 * time.Second, 5 * time.Minute}[q.Window]
					from := now/slot*slot - 11*slot // the open slot and eleven whole ones
					var values []float64
					for _, v := range all {
						if v.at >= from {
							values = append(values, v.v)
						}
					}
					exact := nearestRank(values, windowedQuantiles[q.Quantile])
					require.InEpsilon(t, exact, q.Value, 0.0055, "at %v, window %d, quantile %d", now, q.Window, q.Quantile)
					compared++
				}
			}
			require.Greater(t, compared, 50)
		})
	}
}

func TestCollect_EmptyWindowHasNoQuantile(t *testing.T) {
	e := newTestEngine(nil)
	e.Record(latency("m", e.at(0), 0.2))
	windows := func(now time.Duration) []int {
		var windows []int
		for _, q := range e.collect(e.at(now), TimeToFirstToken)["m"].quantiles {
			windows = append(windows, q.Window)
		}
		return slices.Compact(windows)
	}
	require.Equal(t, []int{0, 1, 2}, windows(0))
	require.Equal(t, []int{0, 1, 2}, windows(59*time.Second))
	require.Equal(t, []int{1, 2}, windows(60*time.Second))
	require.Equal(t, []int{2}, windows(300*time.Second))
	require.Empty(t, windows(time.Hour))
	require.EqualValues(t, 1, e.collect(e.at(time.Hour), TimeToFirstToken)["m"].count, "the total stays")
	e.Record(latency("m", e.at(3*time.Hour), 0.3))
	require.Equal(t, []int{0, 1, 2}, windows(3*time.Hour))
}

// A clock that was set back, or batches whose arrivals cross, must not take
// values out of the windows.
func TestRecord_ClockStepBackLosesNothing(t *testing.T) {
	e := newTestEngine(nil)
	e.Record(latency("m", e.at(10*time.Minute), 0.2))
	e.Record(latency("m", e.at(5*time.Minute), 0.2))
	require.Len(t, e.collect(e.at(time.Minute), TimeToFirstToken)["m"].quantiles, 3*len(windowedQuantiles))
	require.EqualValues(t, 2, e.collect(e.at(time.Minute), TimeToFirstToken)["m"].count)
}

func TestClassicCounts_AreExactAtBounds(t *testing.T) {
	e := newTestEngine(func(o *Options) {
		o.ClassicBounds = map[string][]float64{names.TimeToFirstToken: {0.05, 0.1, 0.2}}
	})
	for _, v := range []float64{0, 0.05, math.Nextafter(0.05, 1), 0.1, 0.15, 0.2, math.Nextafter(0.2, 1), 7} {
		e.Record(latency("m", e.at(0), v))
	}
	require.Equal(t, []uint64{2, 2, 2, 2}, e.collect(e.at(0), TimeToFirstToken)["m"].classic)
}

func TestDefaultBounds_AscendFromAMillisecond(t *testing.T) {
	for _, h := range Histograms {
		require.True(t, slices.IsSorted(h.ClassicBounds), h.Name)
		require.Len(t, slices.Compact(slices.Clone(h.ClassicBounds)), len(h.ClassicBounds), h.Name)
		if h.Unit == "s" {
			require.Equal(t, 0.001, h.ClassicBounds[0], h.Name)
		}
	}
}

func distribution(values ...float64) Distribution {
	var s sketch.Sketch
	for _, v := range values {
		s.Add(v, 1)
	}
	return Distribution{Sketch: s.AppendBinary(nil), Max: s.Max()}
}

// The sketches of many requests add up to what one sketch of all values holds,
// and classic buckets to what counting the values gives, but for those up to 1.1%
// over a bound.
func TestRecord_MergesSketches(t *testing.T) {
	e := newTestEngine(nil)
	random := rand.New(rand.NewPCG(3, 4))
	var whole sketch.Sketch
	var values []float64
	for i := range 200 {
		var gaps []float64
		for range 1 + random.IntN(100) {
			gaps = append(gaps, math.Round(20*math.Exp(random.NormFloat64()))/1000, 0.02*math.Exp(random.NormFloat64()))
		}
		r := request("m", e.at(time.Duration(i)*time.Second))
		r.SetDistribution(InterTokenLatency, distribution(gaps...))
		require.Zero(t, e.Record(r).MalformedSketches)
		values = append(values, gaps...)
		for _, v := range gaps {
			whole.Add(v, 1)
		}
	}
	e.Collect(e.at(200*time.Second), func(s *Snapshot) {
		d := &s.Outcomes[Success].Distributions[InterTokenLatency]
		require.Equal(t, whole.Count(), d.Sketch.Count())
		require.InEpsilon(t, whole.Sum(), d.Sketch.Sum(), 1e-9)
		require.Equal(t, whole.Min(), d.Sketch.Min())
		require.Equal(t, whole.Max(), d.Sketch.Max())
		require.Equal(t, maps.Collect(whole.Buckets()), maps.Collect(d.Sketch.Buckets()))
		cumulative, surely, possibly := uint64(0), uint64(0), uint64(0)
		for i, bound := range e.Bounds(InterTokenLatency) {
			cumulative += d.Classic[i]
			surely, possibly = 0, 0
			for _, v := range values {
				if v <= bound {
					surely++
				}
				if v <= bound*1.011 {
					possibly++
				}
			}
			require.GreaterOrEqual(t, cumulative, surely, "bound %v", bound)
			require.LessOrEqual(t, cumulative, possibly, "bound %v", bound)
		}
		require.Equal(t, d.Sketch.Count(), cumulative+d.Classic[len(d.Classic)-1])
	})
}

func TestRecord_MalformedSketchKeepsTheRest(t *testing.T) {
	e := newTestEngine(nil)
	r := latency("m", e.at(0), 0.2)
	r.SetDistribution(InterTokenLatency, Distribution{Sketch: []byte{1, 2, 3}, Max: 1})
	r.SetDistribution(InterChunkLatency, distribution(0.02))
	require.Equal(t, 1, e.Record(r).MalformedSketches)
	require.Zero(t, e.collect(e.at(0), InterTokenLatency)["m"].count)
	require.Empty(t, e.collect(e.at(0), InterTokenLatency)["m"].exemplars)
	require.EqualValues(t, 1, e.collect(e.at(0), InterChunkLatency)["m"].count)
	require.EqualValues(t, 1, e.collect(e.at(0), TimeToFirstToken)["m"].count)
}

// However large requests say they are, and however many come, a scrape works and
// loses nothing.
func TestRecord_RejectsHugeDistributions(t *testing.T) {
	e := newTestEngine(nil)
	huge := func(gap float64, values uint64) *Request {
		var s sketch.Sketch
		s.Add(gap, values)
		r := latency("m", e.at(0), 0.2)
		r.SetDistribution(InterTokenLatency, Distribution{Sketch: s.AppendBinary(nil), Max: gap})
		return r
	}
	require.Equal(t, 1, e.Record(huge(0.02, maxValues+1)).MalformedSketches)
	const fast, slow = 4000, 1000 // requests; 2^42 values
	for i := range fast + slow {
		gap := 0.02
		if i >= fast {
			gap = 0.5
		}
		require.Zero(t, e.Record(huge(gap, maxValues)).MalformedSketches)
		e.collect(e.at(0), InterTokenLatency)
	}
	got := e.collect(e.at(0), InterTokenLatency)["m"]
	require.EqualValues(t, int64((fast+slow)*maxValues), got.count)
	require.NotEmpty(t, got.quantiles)
	require.Equal(t, 0, got.quantiles[0].Quantile)
	require.InEpsilon(t, 0.02, got.quantiles[0].Value, 0.0055, "the median is among the first requests, and still in the window")
}

func TestRecord_OverflowKeepsTotals(t *testing.T) {
	e := newTestEngine(func(o *Options) { o.Config.MaxSeries = 10 })
	overflowed := 0
	for i := range 10_000 {
		r := latency(fmt.Sprint("model-", i%1000), e.at(0), 0.1)
		r.SetCount(OutputTokens, 3)
		if e.Record(r).Overflow {
			overflowed++
		}
	}
	require.Equal(t, 9900, overflowed)
	require.Equal(t, 10, e.Held())
	all := e.collect(e.at(0), TimeToFirstToken)
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
		e.Record(latency(fmt.Sprint("model-", i), e.at(0), 0.1))
	}
	e.Record(latency("model-0", e.at(time.Minute), 0.1))
	expired := e.Expire(e.at(time.Hour))
	require.Zero(t, expired, "an hour is not over an hour")
	expired = e.Expire(e.at(time.Hour + time.Second))
	require.Equal(t, 2, expired, "model-1 and the overflow series")
	now := e.at(time.Hour + time.Second)
	all := e.collect(now, TimeToFirstToken)
	require.Len(t, all, 1)
	require.Equal(t, e.at(0), all["model-0"].start)
	require.False(t, e.Record(latency("model-3", now, 0.1)).Overflow, "the place is free again")
	e.Record(latency("model-4", now, 0.1))
	again := e.collect(now, TimeToFirstToken)
	require.Equal(t, now, again["model-3"].start)
	require.Equal(t, now, again["overflow"].start, "a series that comes back begins anew")
	require.EqualValues(t, 1, again["overflow"].requests)
}

func TestExpire_ZeroExpirationKeepsSeriesForever(t *testing.T) {
	e := newTestEngine(func(o *Options) { o.Config.SeriesExpiration = 0 })
	e.Record(latency("m", e.at(0), 0.1))
	expired := e.Expire(e.at(100_000 * time.Hour))
	require.Zero(t, expired)
	require.Equal(t, 1, e.Held())
}

func TestRecord_ExpiredSeriesHasASuccessor(t *testing.T) {
	e := newTestEngine(nil)
	e.Record(latency("m", e.at(0), 0.1))
	e.all()[0].expired = true // Expire was here, and has not removed it yet
	e.Record(latency("m", e.at(time.Minute), 0.1))
	require.Equal(t, 1, e.Held())
	require.Equal(t, e.at(time.Minute), e.collect(e.at(time.Minute), TimeToFirstToken)["m"].start)
}

func TestExemplars_AreTheLatestOfTheirBucket(t *testing.T) {
	e := newTestEngine(func(o *Options) {
		o.ClassicBounds = map[string][]float64{names.TimeToFirstToken: {0.1, 1}, names.InterTokenLatency: {0.1, 1}}
	})
	for i, v := range []float64{0.05, 0.5, 0.06, 30} {
		r := latency("m", e.at(time.Duration(i)*time.Second), v)
		r.TraceID, r.SpanID = [16]byte{byte(i + 1)}, [8]byte{byte(i + 1)}
		r.SetDistribution(InterTokenLatency, distribution(0.01, v, 0.02))
		e.Record(r)
	}
	e.Record(latency("m", e.at(9*time.Second), 0.07)) // no trace
	for _, q := range []Quantity{TimeToFirstToken, InterTokenLatency} {
		want := func(i byte, v float64) Exemplar {
			return Exemplar{TraceID: [16]byte{i}, SpanID: [8]byte{i}, Value: v, UnixNano: e.at(time.Duration(i-1) * time.Second).UnixNano()}
		}
		require.Equal(t, []Exemplar{want(3, 0.06), want(2, 0.5), want(4, 30)}, e.collect(e.at(9*time.Second), q)["m"].exemplars)
	}
}

func TestRecord_SeparatesOutcomes(t *testing.T) {
	e := newTestEngine(nil)
	for o := range outcomes {
		for range int(o) + 1 {
			r := latency("m", e.at(time.Duration(o)*time.Second), 0.1)
			r.Outcome = o
			e.Record(r)
		}
	}
	e.Collect(e.at(time.Minute), func(s *Snapshot) {
		for o := range outcomes {
			require.EqualValues(t, o+1, s.Outcomes[o].Requests)
			require.EqualValues(t, o+1, s.Outcomes[o].Distributions[TimeToFirstToken].Sketch.Count())
			require.Equal(t, e.at(time.Duration(o)*time.Second), s.Outcomes[o].Start)
		}
	})
}

// A snapshot is used for one series after the other: nothing of one may show in
// the next.
func TestCollect_SeriesDoNotLeakIntoEachOther(t *testing.T) {
	e := newTestEngine(nil)
	full := latency("a", e.at(0), 0.1)
	full.SetCount(OutputTokens, 5)
	full.SetDistribution(InterTokenLatency, distribution(0.1, 0.2))
	full.TraceID[0] = 1
	e.Record(full)
	e.Record(request("b", e.at(0)))
	cancelled := request("c", e.at(0))
	cancelled.Outcome = Cancelled
	e.Record(cancelled)
	for _, q := range []Quantity{TimeToFirstToken, InterTokenLatency} {
		all := e.collect(e.at(0), q)
		require.NotZero(t, all["a"].count)
		for _, model := range []string{"b", "c"} {
			require.Equal(t, collected{requests: 1, start: e.at(0)}, all[model])
		}
	}
}

func TestIdentity_SurvivesItsKey(t *testing.T) {
	long := strings.Repeat("é", MaxLabelLength)
	tests := map[string]struct {
		dimensions, want []string
	}{
		"as they are":                 {[]string{"chat", "llama"}, []string{"chat", "llama"}},
		"missing ones":                {[]string{"", "llama"}, []string{"", "llama"}},
		"no dimensions":               {[]string{}, []string{}},
		"bytes that are no UTF-8":     {[]string{"a\xff\xfeb", "c"}, []string{"a?b", "c"}},
		"too long, cut at a rune":     {[]string{"x" + long, "y"}, []string{"x" + long[:254], "y"}},
		"too long, all continuations": {[]string{strings.Repeat("\x80", 1000), "y"}, []string{"?", "y"}},
		"the separator of others":     {[]string{"a\x00b,c", "\n\""}, []string{"a\x00b,c", "\n\""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			key := (&Request{Dimensions: clean(test.dimensions), Vantage: "engine"}).AppendKey(nil)
			of := IdentityOf(string(key))
			dimensions, vantage := of.Dimensions, of.Vantage
			require.Equal(t, test.want, dimensions)
			require.Equal(t, "engine", vantage)
			for _, d := range dimensions {
				require.True(t, utf8.ValidString(d))
				require.LessOrEqual(t, len(d), MaxLabelLength)
			}
		})
	}
	require.Equal(t, Identity{Overflow: true}, IdentityOf(overflowKey))
	require.True(t, IsKey(overflowKey, 3))
	require.True(t, IsKey("\x01a\x00", 1))
	for _, malformed := range []string{"\x01a", "\x01", "\x05a", "\xff", "\x01a\x00\x00"} {
		require.False(t, IsKey(malformed, 1), "%q", malformed)
	}
	shifted := (&Request{Dimensions: []string{"ab", "c"}}).AppendKey(nil)
	require.NotEqual(t, shifted, (&Request{Dimensions: []string{"a", "bc"}}).AppendKey(nil), "boundaries count")
}

func clean(values []string) []string {
	cleaned := []string{}
	for _, v := range values {
		cleaned = append(cleaned, CleanLabel(v))
	}
	return cleaned
}

// However long a reader takes over a series, requests of that series and of new ones
// go in: a slow scrape must not stop the spanreader.
func TestRecord_DoesNotWaitForReaders(t *testing.T) {
	e := newTestEngine(nil)
	e.Record(latency("a", e.at(0), 0.1))
	visited := 0
	e.Collect(e.at(time.Second), func(s *Snapshot) {
		recorded := make(chan struct{})
		go func() {
			defer close(recorded)
			e.Record(latency("a", e.at(time.Second), 0.1))
			e.Record(latency("b", e.at(time.Second), 0.1))
		}()
		select {
		case <-recorded:
			visited++
		case <-time.After(10 * time.Second):
			t.Error("a request waits until the reader is done")
		}
		require.EqualValues(t, 1, s.Outcomes[Success].Requests, "not in the snapshot")
	})
	require.Equal(t, 1, visited)
	require.EqualValues(t, 2, e.collect(e.at(time.Second), TimeToFirstToken)["a"].requests)
}

// Writers, readers and the janitor at once; at the end every request is there.
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
				e.Expire(e.at(0)) // visits all, expires none
			}
		}
	})
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				r := latency(strconv.Itoa(i%12), e.at(time.Duration(i)*10*time.Millisecond), 0.1)
				r.Outcome = Outcome(w)
				r.SetCount(OutputTokens, 2)
				r.SetDistribution(InterTokenLatency, distribution(0.01, 0.02, 0.03))
				e.Record(r)
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	var requests, gaps, tokens float64
	e.Collect(e.at(time.Hour), func(s *Snapshot) {
		n, _ := s.Count(OutputTokens)
		tokens += n
		for i := range s.Outcomes {
			if o := &s.Outcomes[i]; o.Requests > 0 {
				requests += float64(o.Requests)
				gaps += float64(o.Distributions[InterTokenLatency].Sketch.Count())
			}
		}
	})
	require.EqualValues(t, writers*each, requests)
	require.EqualValues(t, 2*writers*each, tokens)
	require.EqualValues(t, 3*writers*each, gaps)
}

func TestConfigProblems_NameTheKeyAndTheRemedy(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		want   string // empty: valid
	}{
		"defaults":                  {func(*Config) {}, ""},
		"no dimensions":             {func(c *Config) { c.Dimensions = nil }, ""},
		"no expiration":             {func(c *Config) { c.SeriesExpiration = 0 }, ""},
		"no series":                 {func(c *Config) { c.MaxSeries = 0 }, "`max_series` is 0"},
		"expiration too short":      {func(c *Config) { c.SeriesExpiration = time.Millisecond }, "`series_expiration` is 1ms"},
		"negative expiration":       {func(c *Config) { c.SeriesExpiration = -time.Hour }, "`series_expiration` is -1h0m0s"},
		"an empty dimension":        {func(c *Config) { c.Dimensions = []string{"a", ""} }, "`dimensions` entry 2"},
		"only punctuation":          {func(c *Config) { c.Dimensions = []string{"._."} }, "`dimensions` entry 1"},
		"a dimension twice":         {func(c *Config) { c.Dimensions = []string{"a.b", "a.b"} }, "become the same label"},
		"two become the same label": {func(c *Config) { c.Dimensions = []string{"a.b", "a_b"} }, `both "a.b" and "a_b"`},
		"a label of ours":           {func(c *Config) { c.Dimensions = []string{"outcome"} }, `sets the label "outcome" itself`},
		"the overflow label":        {func(c *Config) { c.Dimensions = []string{"otel_metric_overflow"} }, "itself"},
		"a histogram's own":         {func(c *Config) { c.Dimensions = []string{"le"} }, "itself"},
		"more than there can be": {func(c *Config) {
			c.Dimensions = nil
			for i := range 33 {
				c.Dimensions = append(c.Dimensions, fmt.Sprint("d", i))
			}
		}, "has 33 entries"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := NewDefaultConfig()
			test.change(&c)
			err := errors.Join(c.Problems()...)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}
