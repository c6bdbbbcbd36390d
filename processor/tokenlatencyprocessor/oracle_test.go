// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// oracleCase is a request, and the numbers that another project states for it. See
// testdata/README.md at the project's root.
type oracleCase struct {
	ID, Unit string
	Input    json.RawMessage
	Expected map[string]json.RawMessage
}

// unit returns the unit of a case's numbers. Small numbers of nanoseconds are read
// as milliseconds, because a timeline has a resolution of a microsecond.
func (c *oracleCase) unit() time.Duration {
	switch {
	case c.Unit == "s":
		return time.Second
	case regexp.MustCompile(`\d{7}`).Match(c.Input) && c.Unit == "ns":
		return time.Nanosecond
	default:
		return time.Millisecond
	}
}

// annotated holds the attributes that the processor wrote for one call.
type annotated struct{ attributes pcommon.Map }

func annotateCall(t *testing.T, c call) annotated {
	t.Helper()
	cfg := annotate.DefaultConfig()
	cfg.Detail = annotate.DetailFull
	if c.deadlines != nil {
		cfg.Fluidity = configoptional.Some(*c.deadlines)
	}
	sink := new(consumertest.TracesSink)
	p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(typ), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, p.ConsumeTraces(t.Context(), c.span()))
	return annotated{onlySpan(t, sink.AllTraces()[0]).Attributes()}
}

// number returns a number, or nil for an attribute that is absent.
func (a annotated) number(name string) any {
	v, ok := a.attributes.Get(name)
	switch {
	case !ok:
		return nil
	case v.Type() == pcommon.ValueTypeInt:
		return float64(v.Int())
	default:
		return v.Double()
	}
}

func (a annotated) in(unit time.Duration, name string) any {
	if v := a.number(name); v != nil {
		return v.(float64) / unit.Seconds()
	}
	return nil
}

// samples returns the first of these sketches that the span has, or nil.
func (a annotated) samples(t *testing.T, sketches ...string) *sketch.Sketch {
	t.Helper()
	for _, name := range sketches {
		if v, ok := a.attributes.Get(name); ok {
			s := new(sketch.Sketch)
			require.NoError(t, s.MergeBinary(v.Bytes().AsRaw()))
			return s
		}
	}
	return nil
}

func (a annotated) chunkGaps(t *testing.T) *sketch.Sketch {
	t.Helper()
	return a.samples(t, "tokenpulse.inter_chunk_latency.sketch", "tokenpulse.inter_token_latency.sketch")
}

// ours returns the processor's number for a quantity of an oracle case, in the
// case's unit.
func ours(t *testing.T, quantity string, c call, a annotated, unit time.Duration) any {
	t.Helper()
	switch quantity {
	case "ttft":
		return a.in(unit, "tokenpulse.time_to_first_token")
	case "ttfo":
		return a.in(unit, "tokenpulse.time_to_first_output_token")
	case "ttst": // the gap before the second chunk: cut the stream after it, so that it is the only gap
		c.arrivals = c.arrivals[:min(2, len(c.arrivals))]
		c.reported = nil // the tokens of the whole stream: two chunks with all of them are buffered
		return annotateCall(t, c).in(unit, "tokenpulse.inter_chunk_latency.max")
	case "tpot":
		return a.in(unit, "tokenpulse.time_per_output_token")
	case "e2e", "request_latency":
		return a.in(unit, "tokenpulse.request.duration")
	case "decode_duration":
		return a.in(unit, "tokenpulse.decode.duration")
	case "mean_itl":
		return a.in(unit, "tokenpulse.inter_token_latency.mean")
	case "itl":
		return a.samples(t, "tokenpulse.inter_token_latency.sketch")
	case "inter_chunk_latency", "chunk_delta":
		return a.chunkGaps(t)
	case "itl_count", "chunk_delta_count":
		return float64(a.chunkGaps(t).Count())
	case "chunk_delta_sum":
		return a.chunkGaps(t).Sum() / unit.Seconds()
	case "output_tps_per_user", "output_token_throughput_per_user":
		return a.number("tokenpulse.output_token_rate")
	case "request_token_rate":
		return a.number("tokenpulse.request_token_rate")
	case "osl", "output_tokens", "output_sequence_length", "token_times_count", "total_osl":
		return a.number("tokenpulse.request_token_rate").(float64) * a.number("tokenpulse.request.duration").(float64)
	case "ntpot", "normalized", "normalized_time_per_output_token":
		if rate := a.number("tokenpulse.request_token_rate"); rate != nil {
			return 1 / rate.(float64) / unit.Seconds()
		}
		return nil
	case "fluidity_index":
		return a.number("tokenpulse.fluidity_index")
	case "deadline_miss_rate":
		return 1 - a.number("tokenpulse.fluidity_index").(float64)
	case "token_count_mismatches": // of one request
		if a.number("tokenpulse.token_count.mismatch") != nil {
			return 1.0
		}
		return 0.0
	}
	t.Fatalf("unknown quantity %q: add it to ours, or to notOurs with the reason", quantity)
	return nil
}

// equal compares our number with a source's: times within 2 us, other numbers within
// a millionth, and distributions sample by sample within half a bucket.
func equal(mine, theirs any, unit time.Duration) bool {
	switch theirs := theirs.(type) {
	case nil:
		s, isSketch := mine.(*sketch.Sketch)
		return mine == nil || isSketch && s == nil
	case float64:
		v, ok := mine.(float64)
		return ok && math.Abs(v-theirs) <= 2e-6/unit.Seconds()+1e-6*math.Abs(theirs)
	case []float64:
		s, ok := mine.(*sketch.Sketch)
		if !ok || s == nil || s.Count() != uint64(len(theirs)) {
			return false
		}
		sorted := slices.Sorted(slices.Values(theirs))
		for i, v := range sorted {
			rank := (float64(i) + 0.5) / float64(len(sorted))
			if math.Abs(s.Quantile(rank)/unit.Seconds()-v) > 0.0055*v+2e-6/unit.Seconds() {
				return false
			}
		}
		return true
	}
	return false
}

type agreement int

const (
	ran agreement = iota
	differs
	notApplicable
)

// Every number that another project states agrees with ours, or is listed as
// different with the sentence of docs/definitions.md that explains the difference.
func TestOracle_AgreesOrDiffersByDefinition(t *testing.T) {
	cases, definitions := readOracle(t)
	for _, sentence := range conventions {
		require.Contains(t, definitions, sentence)
	}
	for _, d := range differences {
		require.Contains(t, definitions, d.because, "the reason for the difference of %s %s", d.id, d.quantity)
	}

	counts := map[agreement]int{}
	used := map[string]bool{}
	known := map[string]bool{}
	for _, c := range cases {
		known[c.ID] = true
		t.Run(c.ID, func(t *testing.T) {
			counts[runCase(t, c, used)]++
		})
	}
	for id := range notOneRequest {
		require.True(t, known[id], "notOneRequest lists %s, which is not a case", id)
	}
	require.Len(t, used, len(differences), "a listed difference was not compared")
	t.Logf("%d cases: %d agree, %d differ in some number by definition, %d do not concern one request",
		len(cases), counts[ran], counts[differs], counts[notApplicable])
	require.Equal(t, len(cases), counts[ran]+counts[differs]+counts[notApplicable])
}

func readOracle(t *testing.T) (cases []oracleCase, definitions string) {
	t.Helper()
	testenv.ReadJSON(t, "oracle/cases.json", &cases)
	text, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs", "definitions.md"))
	require.NoError(t, err)
	return cases, strings.Join(strings.Fields(string(text)), " ") // a sentence may be wrapped
}

func runCase(t *testing.T, c oracleCase, used map[string]bool) agreement {
	t.Helper()
	if reason, ok := notOneRequest[c.ID]; ok {
		t.Log("does not apply:", reason)
		return notApplicable
	}
	if values := decodeValues(t, c.Input); values != nil {
		return runValues(t, c, values, used)
	}
	calls := decodeCalls(t, c.Input, c.unit())
	require.NotNil(t, calls, "unknown shape of input: add a decoder, or list the case in notOneRequest")
	var results []annotated
	for _, call := range calls {
		results = append(results, annotateCall(t, call))
	}
	if aggregates, of := aggregatesOf(t, c); aggregates != nil {
		runAggregates(t, c, aggregates, of, calls, results)
		return ran
	}

	outcome := ran
	for quantity, raw := range c.Expected {
		theirs := parseExpected(t, quantity, raw, c.Expected)
		if theirs == skipped {
			continue
		}
		// A list has one number per request, or all samples of a single request.
		list, isList := theirs.([]float64)
		for i, call := range calls {
			one := theirs
			if isList && len(calls) > 1 {
				one = list[i]
			}
			if compare(t, c, quantity, call, results[i], one, used) == differs {
				outcome = differs
			}
		}
	}
	return outcome
}

const skipped = "skipped"

// parseExpected returns a number, a list of numbers, or nil for absent.
func parseExpected(t *testing.T, quantity string, raw json.RawMessage, all map[string]json.RawMessage) any {
	t.Helper()
	switch quantity {
	case "total":
		quantity = "total_missed"
	case "missed":
		return parse[float64](t, raw) / parse[float64](t, all["total"])
	}
	if _, ok := notOurs[quantity]; ok {
		return skipped
	}
	if raw[0] == '[' {
		return parse[[]float64](t, raw)
	}
	return parse[any](t, raw)
}

func compare(t *testing.T, c oracleCase, quantity string, request call, a annotated, theirs any, used map[string]bool) agreement {
	t.Helper()
	counterpart := quantity
	tool, _, _ := strings.Cut(c.ID, "-")
	if name, ok := sameAs[tool][quantity]; ok {
		counterpart = name
	}
	if quantity == "missed" {
		counterpart = "deadline_miss_rate"
	}
	mine := ours(t, counterpart, request, a, c.unit())
	return agree(t, c, quantity, mine, theirs, used)
}

// agree fails unless our number equals the source's, or the difference is listed and
// our number equals the listed one.
func agree(t *testing.T, c oracleCase, quantity string, mine, theirs any, used map[string]bool) agreement {
	t.Helper()
	for _, d := range differences {
		if d.id != c.ID || d.quantity != quantity {
			continue
		}
		used[d.id+" "+d.quantity] = true
		require.False(t, equal(mine, theirs, c.unit()), "%s is listed as different, but agrees", quantity)
		if stated, ok := d.ours.(float64); ok && mine != nil {
			mine = snap(mine.(float64), stated)
		}
		require.True(t, equal(mine, d.ours, c.unit()), "%s is %v by our definition, got %v", quantity, d.ours, describe(mine))
		return differs
	}
	require.True(t, equal(mine, theirs, c.unit()), "%s: %s states %v, got %v", quantity, c.ID, theirs, describe(mine))
	return ran
}

func describe(mine any) any {
	if s, ok := mine.(*sketch.Sketch); ok && s != nil {
		return fmt.Sprintf("%d samples from %v to %v", s.Count(), s.Min(), s.Max())
	}
	return mine
}

// aggregatesOf returns the statistics that a case states over all its requests, by
// quantity, and the quantities in order.
func aggregatesOf(t *testing.T, c oracleCase) (map[string]map[string]float64, []string) {
	t.Helper()
	stated := c.Expected
	if nested, ok := stated["latency"]; ok {
		stated = parse[map[string]json.RawMessage](t, nested)
	}
	aggregates := map[string]map[string]float64{}
	for quantity, raw := range stated {
		if _, ok := notOurs[quantity]; !ok && raw[0] == '{' {
			aggregates[quantity] = parse[map[string]float64](t, raw)
		}
	}
	if len(aggregates) == 0 {
		return nil, nil
	}
	return aggregates, slices.Sorted(maps.Keys(aggregates))
}

// runAggregates compares a tool's statistics with those of our per-request numbers.
// Both tools interpolate linearly between requests, so the test does too: it checks
// the numbers, not their aggregation.
func runAggregates(
	t *testing.T, c oracleCase, aggregates map[string]map[string]float64, quantities []string, calls []call, results []annotated,
) {
	t.Helper()
	// These two tools name per-request numbers and pooled gaps differently.
	perRequest := map[string]string{
		"time_to_first_token": "ttft", "time_per_output_token": "tpot", "inter_token_latency": "tpot",
	}
	pooled := "inter_chunk_latency"
	if strings.HasPrefix(c.ID, "infperf-golden") {
		pooled = "inter_token_latency"
	}
	for _, quantity := range quantities {
		stated := aggregates[quantity]
		switch quantity {
		case pooled:
			requirePooled(t, stated, results, c.unit())
			continue
		case "request_count", "error_request_count", "total_osl":
			requireTotals(t, quantity, stated["avg"], calls, results)
			continue
		}
		name := quantity
		if known, ok := perRequest[quantity]; ok {
			name = known
		}
		var values []float64
		for i, a := range results {
			if !calls[i].failed {
				values = append(values, ours(t, name, calls[i], a, c.unit()).(float64))
			}
		}
		requireLinear(t, quantity, stated, values, 2e-6/c.unit().Seconds())
	}
	if failures, ok := c.Expected["failures"]; ok {
		requireTotals(t, "error_request_count", parse[float64](t, failures), calls, results)
	}
}

func requireTotals(t *testing.T, quantity string, stated float64, calls []call, results []annotated) {
	t.Helper()
	totals := map[string]float64{}
	for i, a := range results {
		outcome, _ := a.attributes.Get(names.Outcome)
		if outcome.Str() != names.OutcomeSuccess {
			totals["error_request_count"]++
			continue
		}
		totals["request_count"]++
		totals["total_osl"] += ours(t, "osl", calls[i], a, time.Second).(float64)
	}
	require.InDelta(t, stated, totals[quantity], 1e-3, quantity)
}

// requirePooled merges the requests' sketches, as token_sli does. Nearest rank and
// interpolation differ by at most the step to the next sample. That step is under
// 0.1% among 20,000 gaps, and zero in the golden file.
func requirePooled(t *testing.T, stated map[string]float64, results []annotated, unit time.Duration) {
	t.Helper()
	var all sketch.Sketch
	for _, a := range results {
		if s := a.chunkGaps(t); s != nil {
			all.Merge(s)
		}
	}
	for name, value := range stated {
		value *= unit.Seconds()
		switch name {
		case "mean", "avg":
			require.InDelta(t, value, all.Sum()/float64(all.Count()), 2e-6)
		case "min":
			require.InDelta(t, value, all.Min(), 2e-6)
		case "max":
			require.InDelta(t, value, all.Max(), 2e-6)
		case "count":
			require.EqualValues(t, stated[name], all.Count())
		case "std":
		default:
			require.InEpsilon(t, value, all.Quantile(rankOf(t, name)), 0.0065, name)
		}
	}
}

func requireLinear(t *testing.T, quantity string, stated map[string]float64, values []float64, tolerance float64) {
	t.Helper()
	slices.Sort(values)
	for name, value := range stated {
		var mine float64
		switch name {
		case "mean", "avg":
			for _, v := range values {
				mine += v / float64(len(values))
			}
		case "min":
			mine = values[0]
		case "max":
			mine = values[len(values)-1]
		case "count":
			mine = float64(len(values))
		case "std":
			continue
		default:
			mine = linear(values, rankOf(t, name))
		}
		require.InDelta(t, value, mine, tolerance+1e-6*value, "%s %s", quantity, name)
	}
}

// linear returns a quantile as numpy does by default, by linear interpolation.
func linear(sorted []float64, q float64) float64 {
	position := q * float64(len(sorted)-1)
	below := int(position)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (position-float64(below))*(sorted[above]-sorted[below])
}

// rankOf returns the quantile of a name such as "p99" or "median".
func rankOf(t *testing.T, name string) float64 {
	t.Helper()
	if name == "median" {
		return 0.5
	}
	var percent float64
	_, err := fmt.Sscanf(name, "p%f", &percent)
	require.NoError(t, err, "unknown statistic %q", name)
	return percent / 100
}

// decodeValues returns a plain list of values, or nil for an input of requests.
func decodeValues(t *testing.T, input json.RawMessage) []float64 {
	t.Helper()
	raw, ok := parse[map[string]json.RawMessage](t, input)["values"]
	if !ok {
		return nil
	}
	var values []float64
	if json.Unmarshal(raw, &values) == nil {
		return values
	}
	switch described := parse[string](t, raw); described {
	case "1..100", "1000*i, i=1..100":
		step := 1.0
		if described != "1..100" {
			step = 1000
		}
		for i := range 100 {
			values = append(values, step*float64(i+1))
		}
	case "ttft-run1":
		for _, c := range readRecording(t) {
			if !c.failed {
				values = append(values, c.arrivals[0].at.Seconds()*1e3)
			}
		}
	default:
		require.Fail(t, "unknown description of values", described)
	}
	return values
}

// runValues compares a case's statistics of plain values with a sketch of them.
func runValues(t *testing.T, c oracleCase, values []float64, used map[string]bool) agreement {
	t.Helper()
	var s sketch.Sketch
	for _, v := range values {
		s.Add(v, 1)
	}
	outcome := ran
	for name, raw := range c.Expected {
		if _, ok := notOurs[name]; ok {
			continue
		}
		if raw[0] == '{' {
			if runConventions(t, c, name, &s, parse[map[string]float64](t, raw), used) == differs {
				outcome = differs
			}
			continue
		}
		stated, mine := parse[float64](t, raw), 0.0
		switch name {
		case "count":
			mine = float64(s.Count())
		case "total":
			mine = s.Sum()
		case "avg", "mean":
			mine = s.Sum() / float64(s.Count())
		case "min":
			mine = s.Min()
		case "max":
			mine = s.Max()
		default:
			mine = snap(s.Quantile(rankOf(t, name)), stated)
		}
		if agree(t, c, name, mine, stated, used) == differs {
			outcome = differs
		}
	}
	return outcome
}

// runConventions compares our quantile with those of each convention: it equals the
// one that conventions lists as ours.
func runConventions(
	t *testing.T, c oracleCase, quantile string, s *sketch.Sketch, stated map[string]float64, used map[string]bool,
) agreement {
	t.Helper()
	outcome := ran
	for convention, value := range stated {
		sentence, known := conventions[convention]
		require.True(t, known, "unknown convention of percentiles: %s", convention)
		mine := snap(s.Quantile(rankOf(t, quantile)), value)
		if sentence == "" {
			outcome = max(outcome, agree(t, c, quantile+" "+convention, mine, value, used))
		} else if mine != value {
			outcome = differs
		}
	}
	return outcome
}

// snap returns the stated value if ours differs by less than a sketch's resolution.
func snap(mine, stated float64) float64 {
	if math.Abs(mine-stated) <= 0.0055*stated {
		return stated
	}
	return mine
}
