// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package metricreader

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/goleak"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// began is when the readers of these tests begin.
var began = time.Unix(1000, 0)

// second returns a timestamp in seconds after began.
func second(n float64) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(began.Add(time.Duration(n * float64(time.Second))))
}

// harness is a reader that lists its increments.
type harness struct {
	*Reader
	t   *testing.T
	now time.Time
	all []string
}

func newHarness(t *testing.T, o Options) *harness {
	if o.MaxStreams == 0 {
		o.MaxStreams = 100
	}
	if o.Dimensions == nil {
		o.Dimensions = series.DimensionsOf("model")
	}
	return &harness{Reader: New(o, began), t: t, now: began}
}

// got returns the increments of metrics, and its tally.
func (h *harness) got(metrics ...pmetric.Metrics) []string {
	h.all = nil
	for _, m := range metrics {
		h.tally = h.Read(m, h.now, func(i *series.Increment) series.Recorded {
			at := fmt.Sprint(i.Dimensions, i.Vantage)
			if i.Overflow {
				at = "overflow"
			}
			switch i.Part {
			case series.PartRequests:
				at += fmt.Sprint(" requests ", series.OutcomeNames[i.Outcome], " ", i.Requests)
			case series.PartCount:
				at += fmt.Sprint(" ", series.Counters[i.Count].Name, " ", series.Counters[i.Count].Type, " ", i.Sum)
			case series.PartVerdicts:
				at += fmt.Sprint(" ", i.SLO, " ", i.Verdict, " ", i.Requests)
			default:
				at += fmt.Sprintf(" %s n=%d sum=%.6g %.3f..%.3f", i.Quantity.Row().Metric.Name, i.Values.Count(), i.Values.Sum(), i.Values.Min(), i.Values.Max())
			}
			var exemplars strings.Builder
			for _, e := range i.Exemplars {
				fmt.Fprintf(&exemplars, " exemplar=%g@%x", e.Value, e.TraceID[:1])
			}
			h.all = append(h.all, at+exemplars.String())
			return series.Recorded{}
		})
	}
	return h.all
}

// ignored returns the reasons of the last batch.
func (h *harness) ignored() (all []string) {
	for reason, n := range h.tally.Ignored {
		for range n {
			all = append(all, ReasonNames[reason])
		}
	}
	return all
}

// newMetric returns metrics with one metric that has no data point yet.
func newMetric(name string) (pmetric.Metrics, pmetric.Metric) {
	metrics := pmetric.NewMetrics()
	m := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(name)
	return metrics, m
}

func putAttributes(into pcommon.Map, attributes map[string]any) {
	if err := into.FromRaw(attributes); err != nil {
		panic(err)
	}
}

// sum returns metrics with one data point.
func sum(name string, temporality pmetric.AggregationTemporality, start, at float64, v int64, attributes map[string]any) pmetric.Metrics {
	metrics, m := newMetric(name)
	s := m.SetEmptySum()
	s.SetIsMonotonic(true)
	s.SetAggregationTemporality(temporality)
	p := s.DataPoints().AppendEmpty()
	p.SetStartTimestamp(second(start))
	p.SetTimestamp(second(at))
	p.SetIntValue(v)
	putAttributes(p.Attributes(), attributes)
	return metrics
}

const (
	cumulative = pmetric.AggregationTemporalityCumulative
	delta      = pmetric.AggregationTemporalityDelta
)

var success = map[string]any{"outcome": "success", "model": "a", "vantage": "server"}

func requests(start, at float64, n int64) pmetric.Metrics {
	return sum("tokenpulse.requests", cumulative, start, at, n, success)
}

// values returns metrics with one data point, at 15 seconds, of a histogram with one value in bucket 0,
// which is (1, 2^(1/64)], and two in bucket 2.
func values(start float64) (pmetric.Metrics, pmetric.ExponentialHistogramDataPoint) {
	metrics, m := newMetric("tokenpulse.time_to_first_token")
	h := m.SetEmptyExponentialHistogram()
	h.SetAggregationTemporality(cumulative)
	p := h.DataPoints().AppendEmpty()
	p.SetStartTimestamp(second(start))
	p.SetTimestamp(second(15))
	p.SetScale(6)
	p.Positive().BucketCounts().FromRaw([]uint64{1, 0, 2})
	p.SetCount(3)
	p.SetSum(1.01 + 2*1.03)
	putAttributes(p.Attributes(), success)
	return metrics, p
}

func TestRead_CumulativeSumsAddTheirIncrease(t *testing.T) {
	h := newHarness(t, Options{})
	require.Equal(t, []string{"[a]server requests success 3", "[a]server requests success 4"},
		h.got(requests(1, 1, 0), requests(1, 15, 3), requests(1, 30, 3), requests(1, 60, 7)))
	require.EqualValues(t, 1, h.tally.Points)
}

func TestRead_DeltaSumsAddUp(t *testing.T) {
	h := newHarness(t, Options{})
	at := func(start, end float64, n int64) pmetric.Metrics {
		return sum("tokenpulse.requests", delta, start, end, n, success)
	}
	require.Equal(t, []string{"[a]server requests success 3", "[a]server requests success 5"},
		h.got(at(-100, 15, 3), at(15, 30, 5)), "a delta counts whenever it began")
	require.Empty(t, h.got(at(-100, 15, 3)))
	require.Equal(t, []string{"repeated"}, h.ignored())
	require.Equal(t, []string{"[a]server requests success 1"}, h.got(at(15, 45, 6)), "the refused one again, and more")
}

// A producer that restarts has a new start time. One that counts again from zero without
// one was reset, too.
func TestRead_ResetsBeginAgain(t *testing.T) {
	h := newHarness(t, Options{})
	h.got(requests(1, 15, 10))
	require.Equal(t, []string{"[a]server requests success 12"}, h.got(requests(20, 30, 12)))
	require.Equal(t, []string{"[a]server requests success 4"}, h.got(requests(20, 45, 4)))
	m, p := values(1)
	h.got(m)
	p.SetTimestamp(second(30))
	p.Positive().BucketCounts().FromRaw([]uint64{0, 0, 2})
	p.SetCount(2)
	p.SetSum(2.06)
	require.Equal(t, []string{"[a]server tokenpulse.time_to_first_token n=2 sum=2.06 1.022..1.033"}, h.got(m))
}

func TestRead_LatePointsOfAnEarlierStartAddTheirIncrease(t *testing.T) {
	h := newHarness(t, Options{})
	h.got(requests(1, 15, 10), requests(20, 30, 1))
	require.Equal(t, []string{"[a]server requests success 2"}, h.got(requests(1, 19, 12)), "the last flush before the restart")
}

func TestRead_ResourcesDistinguishProducers(t *testing.T) {
	h := newHarness(t, Options{})
	first, second, swapped := requests(1, 15, 10), requests(1, 15, 4), requests(1, 30, 11)
	attributes := first.ResourceMetrics().At(0).Resource().Attributes()
	attributes.PutStr("host.name", "x")
	attributes.PutInt("pid", 1)
	second.ResourceMetrics().At(0).Resource().Attributes().PutStr("host.name", "y")
	attributes = swapped.ResourceMetrics().At(0).Resource().Attributes()
	attributes.PutInt("pid", 1)
	attributes.PutStr("host.name", "x")
	require.Equal(t, []string{"[a]server requests success 10", "[a]server requests success 4", "[a]server requests success 1"}, h.got(first, second, swapped))
}

// Two streams of one series differ in an attribute that is not a dimension here.
func TestRead_StreamsOfOneSeriesAddUp(t *testing.T) {
	h := newHarness(t, Options{})
	other := sum("tokenpulse.requests", cumulative, 1, 15, 4, map[string]any{"outcome": "success", "model": "a", "vantage": "server", "user": "u"})
	require.Equal(t, []string{"[a]server requests success 10", "[a]server requests success 4"}, h.got(requests(1, 15, 10), other))
}

// One has the attribute on its resource, the other on its data points.
func TestRead_AnAttributeOfThePointIsNotOneOfTheResource(t *testing.T) {
	h := newHarness(t, Options{})
	first := requests(1, 15, 10)
	first.ResourceMetrics().At(0).Resource().Attributes().PutStr("user", "u")
	other := sum("tokenpulse.requests", cumulative, 1, 16, 12, map[string]any{"outcome": "success", "model": "a", "vantage": "server", "user": "u"})
	require.Equal(t, []string{"[a]server requests success 10", "[a]server requests success 12"}, h.got(first, other))
}

func TestRead_CumulativeAndDeltaStreamsAddUp(t *testing.T) {
	h := newHarness(t, Options{})
	require.Equal(t, []string{"[a]server requests success 10", "[a]server requests success 12"},
		h.got(requests(1, 15, 10), sum("tokenpulse.requests", delta, 1, 16, 12, success)))
}

func TestRead_DimensionsComeFromThePointThenItsResource(t *testing.T) {
	h := newHarness(t, Options{Dimensions: series.DimensionsOf("model", "host.name", "missing")})
	m := requests(1, 15, 1)
	m.ResourceMetrics().At(0).Resource().Attributes().PutStr("host.name", "x")
	m.ResourceMetrics().At(0).Resource().Attributes().PutStr("model", "of the resource")
	require.Equal(t, []string{"[a x ]server requests success 1"}, h.got(m))
	require.Equal(t, []string{"[  ] requests error 2"}, h.got(sum("tokenpulse.requests", cumulative, 1, 15, 2, map[string]any{"outcome": "error"})))
}

// Producers have divided numbers into bands. A label of other bands does not fit here.
func TestRead_LabelsOfBandsStay(t *testing.T) {
	h := newHarness(t, Options{Dimensions: series.Dimensions{
		{Attribute: "model"}, {Attribute: "gen_ai.usage.input_tokens", Bands: []float64{1000, 8000}}, {Attribute: "share", Bands: []float64{0.5}, Label: "cached"},
	}})
	of := func(input, cached string) map[string]any {
		return map[string]any{"outcome": "success", "gen_ai_usage_input_tokens": input, "cached": cached}
	}
	for i, test := range []struct {
		attributes map[string]any
		want       string
	}{
		{of("0-1000", "0.5+"), "0-1000 0.5+"},
		{of("8000+", "unknown"), "8000+ unknown"},
		{of("0-500", "0-1"), "unknown unknown"},
		{map[string]any{"outcome": "success", "gen_ai.usage.input_tokens": 5, "share": 0.1}, "unknown unknown"},
	} {
		require.Equal(t, []string{"[ " + test.want + "] requests success 1"}, h.got(sum("tokenpulse.requests", delta, float64(i), float64(i+1), 1, test.attributes)))
	}
}

func TestRead_ReadsEachKindOfSum(t *testing.T) {
	h := newHarness(t, Options{})
	for _, test := range []struct {
		name       string
		attributes map[string]any
		want       string
	}{
		{"tokenpulse.requests", map[string]any{"otel.metric.overflow": true, "outcome": "cancelled"}, "overflow requests cancelled 7"},
		{"tokenpulse.tokens", map[string]any{"type": "output"}, "[] tokenpulse.tokens output 7"},
		{"tokenpulse.stalls", nil, "[] tokenpulse.stalls  7"},
		{"tokenpulse.requests.unmeasured", map[string]any{"indicator": "time_to_first_token", "reason": "no_token"}, "[] tokenpulse.requests.unmeasured  7"},
		{"tokenpulse.slo.requests", map[string]any{"slo": "tpot", "verdict": "bad"}, "[] tpot bad 7"},
	} {
		require.Equal(t, []string{test.want}, h.got(sum(test.name, cumulative, 1, 15, 7, test.attributes)))
	}
	require.Equal(t, []string{"[] tokenpulse.tokens input 0"}, h.got(sum("tokenpulse.tokens", cumulative, 1, 15, 0, map[string]any{"type": "input"})),
		"a counter appears at 0, so that its first increase is visible")
}

func TestRead_ExemplarsAreLimited(t *testing.T) {
	h := newHarness(t, Options{})
	m, p := values(1)
	for _, v := range []float64{-1, math.NaN(), 1 << 40} { // no value of a request
		e := p.Exemplars().AppendEmpty()
		e.SetTraceID([16]byte{1})
		e.SetDoubleValue(v)
	}
	for range 2 * maxExemplars {
		e := p.Exemplars().AppendEmpty()
		e.SetTraceID([16]byte{0xab})
		e.SetIntValue(1)
	}
	got := h.got(m)
	require.Len(t, got, 1)
	require.Equal(t, maxExemplars, strings.Count(got[0], " exemplar="))
	require.Equal(t, maxExemplars, strings.Count(got[0], " exemplar=1@ab"))
}

func TestRead_HistogramsAddTheirIncrease(t *testing.T) {
	h := newHarness(t, Options{})
	m, p := values(1)
	p.SetMin(1.01)
	p.SetMax(1.03)
	e := p.Exemplars().AppendEmpty()
	e.SetTraceID([16]byte{0xab})
	e.SetDoubleValue(1.03)
	p.Exemplars().AppendEmpty().SetDoubleValue(1.01) // without a trace
	require.Equal(t, []string{"[a]server tokenpulse.time_to_first_token n=3 sum=3.07 1.010..1.030 exemplar=1.03@ab"}, h.got(m))

	p.SetTimestamp(second(30))
	p.Positive().BucketCounts().FromRaw([]uint64{1, 0, 3, 0, 0})
	p.SetZeroCount(1)
	p.SetCount(5)
	p.SetSum(4.1)
	p.SetMin(0)
	p.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
	require.Equal(t, []string{"[a]server tokenpulse.time_to_first_token n=2 sum=1.03 0.000..1.030"}, h.got(m),
		"the smallest value is new, the largest is in the bucket of the largest")
	p.SetTimestamp(second(45))
	require.Empty(t, h.got(m))
	require.Empty(t, h.ignored())
}

// What a stream counted before this reader began is unknown, unless its zero point arrived.
func TestRead_CumulativeStreamThatBeganBeforeCountsFromItsSecondPoint(t *testing.T) {
	h := newHarness(t, Options{})
	require.Empty(t, h.got(requests(-1, 15, 10)))
	require.Equal(t, []string{"began_before"}, h.ignored())
	require.Equal(t, []string{"[a]server requests success 2"}, h.got(requests(-1, 30, 12)))
	m, p := values(-1)
	require.Empty(t, h.got(m))
	p.SetTimestamp(second(30))
	p.Positive().BucketCounts().SetAt(2, 3)
	p.SetCount(4)
	p.SetSum(4.1)
	require.Len(t, h.got(m), 1)
	require.Equal(t, []string{"[a]server requests success 9"}, h.got(requests(-2, -2, 0), requests(-2, 15, 9)))
}

func TestRead_IgnoresWhatItCannotCount(t *testing.T) {
	number := func(change func(pmetric.Metric, pmetric.NumberDataPoint)) pmetric.Metrics {
		metrics := requests(1, 15, 1)
		m := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
		change(m, m.Sum().DataPoints().At(0))
		return metrics
	}
	histogram := func(change func(pmetric.ExponentialHistogramDataPoint)) pmetric.Metrics {
		m, p := values(1)
		change(p)
		return m
	}
	for name, test := range map[string]struct {
		metrics pmetric.Metrics
		want    string
	}{
		"another metric": {sum("http.requests", cumulative, 1, 15, 1, nil), "foreign"},
		"percentiles":    {sum("tokenpulse.time_to_first_token.percentile", cumulative, 1, 15, 1, nil), "foreign"},
		"a sum that can decrease": {number(func(m pmetric.Metric, _ pmetric.NumberDataPoint) {
			m.Sum().SetIsMonotonic(false)
		}), "wrong_type"},
		"a gauge": {number(func(m pmetric.Metric, _ pmetric.NumberDataPoint) {
			m.SetEmptyGauge().DataPoints().AppendEmpty()
		}), "wrong_type"},
		"classic buckets": {number(func(m pmetric.Metric, _ pmetric.NumberDataPoint) {
			m.SetName("tokenpulse.time_to_first_token")
			m.SetEmptyHistogram().DataPoints().AppendEmpty()
		}), "wrong_type"},
		"a summary": {number(func(m pmetric.Metric, _ pmetric.NumberDataPoint) {
			m.SetEmptySummary().DataPoints().AppendEmpty()
		}), "wrong_type"},
		"no temporality": {number(func(m pmetric.Metric, _ pmetric.NumberDataPoint) {
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityUnspecified)
		}), "unknown_temporality"},
		"unknown outcome": {sum("tokenpulse.requests", cumulative, 1, 15, 1, map[string]any{"outcome": "lost"}), "unknown_label"},
		"no outcome":      {sum("tokenpulse.requests", cumulative, 1, 15, 1, nil), "unknown_label"},
		"unknown type":    {sum("tokenpulse.tokens", cumulative, 1, 15, 1, map[string]any{"type": "thinking"}), "unknown_label"},
		"no phase":        {histogramNamed("tokenpulse.phase.duration"), "unknown_label"},
		"no SLO":          {sum("tokenpulse.slo.requests", cumulative, 1, 15, 1, map[string]any{"verdict": "bad"}), "unknown_label"},
		"no start":        {number(func(_ pmetric.Metric, p pmetric.NumberDataPoint) { p.SetStartTimestamp(0) }), "no_start"},
		"no recorded value": {number(func(_ pmetric.Metric, p pmetric.NumberDataPoint) {
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}), "no_value"},
		"ends before it starts": {number(func(_ pmetric.Metric, p pmetric.NumberDataPoint) {
			p.SetTimestamp(p.StartTimestamp() - 1)
		}), "malformed"},
		"negative":             {number(func(_ pmetric.Metric, p pmetric.NumberDataPoint) { p.SetIntValue(-1) }), "malformed"},
		"no number":            {number(func(_ pmetric.Metric, p pmetric.NumberDataPoint) { p.SetDoubleValue(math.NaN()) }), "malformed"},
		"infinite":             {number(func(_ pmetric.Metric, p pmetric.NumberDataPoint) { p.SetDoubleValue(math.Inf(1)) }), "malformed"},
		"too many":             {number(func(_ pmetric.Metric, p pmetric.NumberDataPoint) { p.SetIntValue(math.MaxInt64) }), "malformed"},
		"a part of a request":  {number(func(_ pmetric.Metric, p pmetric.NumberDataPoint) { p.SetDoubleValue(1.5) }), "malformed"},
		"scale 5":              {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.SetScale(5) }), "wrong_scale"},
		"wide zero bucket":     {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.SetZeroThreshold(0.5) }), "wrong_scale"},
		"negative values":      {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.Negative().BucketCounts().FromRaw([]uint64{1}) }), "malformed"},
		"lowest offset":        {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.Positive().SetOffset(math.MinInt32) }), "malformed"},
		"highest offset":       {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.Positive().SetOffset(math.MaxInt32) }), "malformed"},
		"huge bucket":          {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.Positive().BucketCounts().SetAt(0, math.MaxUint64) }), "malformed"},
		"huge zeros":           {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.SetZeroCount(math.MaxUint64) }), "malformed"},
		"another count":        {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.SetCount(4) }), "malformed"},
		"a sum of others":      {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.SetSum(100) }), "malformed"},
		"a sum of NaN":         {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.SetSum(math.NaN()) }), "malformed"},
		"an infinite sum":      {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.SetSum(math.Inf(1)) }), "malformed"},
		"a maximum of others":  {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.SetMax(100) }), "malformed"},
		"a minimum of others":  {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.SetMin(-1) }), "malformed"},
		"no buckets, but sums": {histogram(func(p pmetric.ExponentialHistogramDataPoint) { p.Positive().BucketCounts().FromRaw(nil); p.SetCount(0) }), "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			require.Empty(t, h.got(test.metrics))
			require.Equal(t, []string{test.want}, h.ignored())
			require.Zero(t, h.Held(), "what is ignored takes no memory")
		})
	}
}

func histogramNamed(name string) pmetric.Metrics {
	m, _ := values(1)
	m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName(name)
	return m
}

func TestRead_StreamsAreLimited(t *testing.T) {
	h := newHarness(t, Options{MaxStreams: 2})
	model := func(name string, at float64, n int64) pmetric.Metrics {
		return sum("tokenpulse.requests", cumulative, 1, at, n, map[string]any{"outcome": "success", "model": name})
	}
	require.Equal(t, []string{"[a] requests success 1", "[b] requests success 1"}, h.got(model("a", 15, 1), model("b", 15, 1), model("c", 15, 1)))
	require.Equal(t, []string{"limit"}, h.ignored())
	require.Equal(t, []string{"[a] requests success 1"}, h.got(model("a", 30, 2)), "known streams go on")
	require.Equal(t, 2, h.Held())

	h.now = h.now.Add(forgetAfter + time.Second)
	h.Expire(h.now)
	require.Zero(t, h.Held())
	require.Empty(t, h.streams.all)
}

// A delta stream has a new start time with each data point.
func TestRead_DeltaStreamsTakeLittleMemory(t *testing.T) {
	h := newHarness(t, Options{})
	for i := range 50 {
		require.Len(t, h.got(sum("tokenpulse.requests", delta, float64(i), float64(i+1), 1, success)), 1)
		require.LessOrEqual(t, h.Held(), maxDeltaPeriods)
	}
	h.got(sum("tokenpulse.requests", delta, 49-maxDeltaPeriods+1, 50-maxDeltaPeriods+1, 1, success))
	require.Equal(t, []string{"repeated"}, h.ignored())
}

// A producer that was away for longer than an hour must not count twice.
func TestExpire_ForgottenStreamCountsFromItsNextPoint(t *testing.T) {
	h := newHarness(t, Options{})
	h.got(requests(1, 15, 10))
	h.now = h.now.Add(forgetAfter / 2)
	h.Expire(h.now)
	require.Equal(t, []string{"[a]server requests success 1"}, h.got(requests(1, 30, 11)))
	h.now = h.now.Add(forgetAfter + time.Second)
	h.Expire(h.now)
	require.Empty(t, h.got(requests(1, 5000, 13)))
	require.Equal(t, []string{"began_before"}, h.ignored())
	require.Equal(t, []string{"[a]server requests success 1"}, h.got(requests(1, 5015, 14)))
	require.Equal(t, []string{"[a]server requests success 3"}, h.got(requests(5000, 5030, 3)), "new streams count at once")
}

// The clock of a producer that is forgotten is a day ahead.
func TestExpire_WrongClockDoesNotHideOthers(t *testing.T) {
	h := newHarness(t, Options{})
	h.got(requests(86400, 86401, 1))
	h.now = h.now.Add(2 * forgetAfter)
	h.Expire(h.now)
	require.Len(t, h.got(requests(7000, 7015, 1)), 1)
}

func gaugeOf(name string, at, v float64, attributes map[string]any) pmetric.Metrics {
	metrics, m := newMetric(name)
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(second(at))
	p.SetDoubleValue(v)
	putAttributes(p.Attributes(), attributes)
	return metrics
}

func (h *harness) published() (all []string) {
	h.Gauges(h.now, func(g *slo.Gauge) {
		all = append(all, fmt.Sprintf("%v %v %v %v %v", series.LabelsOf(g.Key).Dimensions, g.Metric[len("tokenpulse.slo."):], g.SLO, g.Window, g.Value))
	})
	return all
}

func TestGauges_AreThoseOfTheProducers(t *testing.T) {
	h := newHarness(t, Options{})
	of := func(more map[string]any) map[string]any {
		all := map[string]any{"model": "a", "slo": "tpot"}
		maps.Copy(all, more)
		return all
	}
	require.Empty(t, h.got(
		gaugeOf("tokenpulse.slo.objective", 15, 0.95, of(nil)),
		gaugeOf("tokenpulse.slo.burn_rate", 15, 2, of(map[string]any{"window": "30m"})),
		gaugeOf("tokenpulse.slo.burn_rate", 15, 3, of(map[string]any{"window": "30m", "user": "other"})),
		gaugeOf("tokenpulse.slo.error_budget.remaining", 15, 0.5, of(nil)),
		gaugeOf("tokenpulse.slo.error_budget.remaining", 15, -1, of(map[string]any{"user": "other"})),
	))
	require.ElementsMatch(t, []string{"[a] burn_rate tpot 30m 3", "[a] error_budget.remaining tpot  -1", "[a] objective tpot  0.95"}, h.published(), "the worst of each")

	h.got(gaugeOf("tokenpulse.slo.burn_rate", 30, 1, of(map[string]any{"window": "30m", "user": "other"})))
	require.Contains(t, h.published(), "[a] burn_rate tpot 30m 2")
	h.got(gaugeOf("tokenpulse.slo.burn_rate", 29, 9, of(map[string]any{"window": "30m", "user": "other"})))
	require.Equal(t, []string{"repeated"}, h.ignored())

	h.now = h.now.Add(staleAfter + time.Second)
	require.Empty(t, h.published(), "a producer that stopped has no burn rate")
	h.Expire(h.now)
	require.Zero(t, h.Held())
}

func TestGauges_AreIgnoredIfTheyCannotBePublished(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		metrics pmetric.Metrics
		want    string
	}{
		"own objectives": {Options{OwnObjectives: true}, gaugeOf("tokenpulse.slo.objective", 1, 0.9, map[string]any{"slo": "a"}), "own_objectives"},
		"no SLO":         {Options{}, gaugeOf("tokenpulse.slo.objective", 1, 0.9, nil), "unknown_label"},
		"unknown window": {Options{}, gaugeOf("tokenpulse.slo.burn_rate", 1, 1, map[string]any{"slo": "a", "window": "7m"}), "unknown_label"},
		"no number":      {Options{}, gaugeOf("tokenpulse.slo.objective", 1, math.NaN(), map[string]any{"slo": "a"}), "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, test.options)
			h.got(test.metrics)
			require.Equal(t, []string{test.want}, h.ignored())
			require.Zero(t, h.Held())
		})
	}
	h := newHarness(t, Options{MaxStreams: 1})
	h.got(gaugeOf("tokenpulse.slo.objective", 1, 0.9, map[string]any{"slo": "a"}), gaugeOf("tokenpulse.slo.objective", 1, 0.9, map[string]any{"slo": "b"}))
	require.Equal(t, []string{"limit"}, h.ignored())
}
