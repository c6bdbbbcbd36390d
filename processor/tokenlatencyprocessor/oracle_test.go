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
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
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

// answerTo returns the numbers of the reference, which the processor's equal.
func answerTo(t *testing.T, c call) reference.Answer {
	t.Helper()
	cfg, settings := annotate.DefaultConfig(), reference.Usual
	cfg.Detail = annotate.DetailFull
	if c.deadlines != nil {
		cfg.Fluidity = configoptional.Some(*c.deadlines)
		settings.FirstToken, settings.NextToken = int64(c.deadlines.TimeToFirstToken), int64(c.deadlines.TimePerOutputToken)
	}
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
	require.NoError(t, p.ConsumeTraces(t.Context(), c.span()))
	attributes := onlySpan(t, sink.AllTraces()[0]).Attributes()
	answer := reference.Of(&c.Stream, settings)
	answer.RequireAttributes(t, attributes, "the processor differs from the reference")
	requireSketch(t, answer.InterToken, attributes, "tokenpulse.inter_token_latency.sketch")
	requireSketch(t, answer.InterChunk, attributes, "tokenpulse.inter_chunk_latency.sketch", "tokenpulse.inter_token_latency.sketch")
	return answer
}

// requireSketch compares the first of these sketches that the span has, sample by sample within
// half a bucket.
func requireSketch(t *testing.T, samples []reference.Number, attributes pcommon.Map, sketches ...string) {
	t.Helper()
	var s sketch.Sketch
	for _, name := range sketches {
		if v, ok := attributes.Get(name); ok {
			require.NoError(t, s.MergeBinary(v.Bytes().AsRaw()))
			break
		}
	}
	require.EqualValues(t, len(samples), s.Count(), sketches[0])
	for i, v := range reference.Values(samples) {
		rank := (float64(i) + 0.5) / float64(len(samples))
		require.InDelta(t, v, s.Quantile(rank), reference.SketchError*v+2e-6, sketches[0])
	}
}

// quantityOf returns the answer's number for a quantity of an oracle case, in the case's unit.
func quantityOf(t *testing.T, quantity string, answer reference.Answer, unit time.Duration) any {
	t.Helper()
	number := func(name string, in float64) any {
		if n, ok := answer.Numbers["tokenpulse."+name]; ok {
			return n.Value / in
		}
		return nil
	}
	all := func(samples []reference.Number) any {
		if samples == nil {
			return nil
		}
		return inUnit(samples, unit)
	}
	switch quantity {
	case "ttft":
		return number("time_to_first_token", unit.Seconds())
	case "ttfo":
		return number("time_to_first_output_token", unit.Seconds())
	case "ttst": // the gap before the second chunk
		if len(answer.InterChunk) == 0 {
			return nil
		}
		return answer.InterChunk[0].Value / unit.Seconds()
	case "tpot":
		return number("time_per_output_token", unit.Seconds())
	case "e2e", "request_latency":
		return number("request.duration", unit.Seconds())
	case "decode_duration":
		return number("decode.duration", unit.Seconds())
	case "mean_itl":
		return number("inter_token_latency.mean", unit.Seconds())
	case "itl":
		return all(answer.InterToken)
	case "inter_chunk_latency", "chunk_delta":
		return all(answer.InterChunk)
	case "itl_count", "chunk_delta_count":
		return float64(len(answer.InterChunk))
	case "chunk_delta_sum":
		return reference.Mean(inUnit(answer.InterChunk, unit)) * float64(len(answer.InterChunk))
	case "output_tps_per_user", "output_token_throughput_per_user":
		return number("output_token_rate", 1)
	case "request_token_rate":
		return number("request_token_rate", 1)
	case "osl", "output_tokens", "output_sequence_length", "token_times_count", "total_osl":
		return float64(answer.OutputTokens)
	case "ntpot", "normalized", "normalized_time_per_output_token":
		if rate := number("request_token_rate", 1); rate != nil {
			return 1 / rate.(float64) / unit.Seconds()
		}
		return nil
	case "fluidity_index":
		return number("fluidity_index", 1)
	case "deadline_miss_rate":
		return 1 - answer.Numbers["tokenpulse.fluidity_index"].Value
	case "token_count_mismatches": // of one request
		if answer.Numbers["tokenpulse.token_count.mismatch"].Value != 0 {
			return 1.0
		}
		return 0.0
	}
	t.Fatalf("unknown quantity %q: add it to quantityOf, or to notOurs with the reason", quantity)
	return nil
}

// inUnit returns the sorted values of samples in a unit.
func inUnit(samples []reference.Number, unit time.Duration) []float64 {
	values := reference.Values(samples)
	for i := range values {
		values[i] /= unit.Seconds()
	}
	return values
}

// equal compares our number with a source's: times within 2 us, other numbers within a millionth.
func equal(mine, theirs any, unit time.Duration) bool {
	near := func(mine, theirs float64) bool {
		return math.Abs(mine-theirs) <= 2e-6/unit.Seconds()+1e-6*math.Abs(theirs)
	}
	switch theirs := theirs.(type) {
	case float64:
		v, ok := mine.(float64)
		return ok && near(v, theirs)
	case []float64:
		values, ok := mine.([]float64)
		return ok && slices.EqualFunc(values, slices.Sorted(slices.Values(theirs)), near)
	}
	return mine == nil && theirs == nil
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
	var answers []reference.Answer
	for _, call := range calls {
		answers = append(answers, answerTo(t, call))
	}
	if aggregates, of := aggregatesOf(t, c); aggregates != nil {
		runAggregates(t, c, aggregates, of, answers)
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
		for i, answer := range answers {
			one := theirs
			if isList && len(calls) > 1 {
				one = list[i]
			}
			if compare(t, c, quantity, answer, one, used) == differs {
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

func compare(t *testing.T, c oracleCase, quantity string, answer reference.Answer, theirs any, used map[string]bool) agreement {
	t.Helper()
	counterpart := quantity
	tool, _, _ := strings.Cut(c.ID, "-")
	if name, ok := sameAs[tool][quantity]; ok {
		counterpart = name
	}
	if quantity == "missed" {
		counterpart = "deadline_miss_rate"
	}
	return agree(t, c, quantity, quantityOf(t, counterpart, answer, c.unit()), theirs, used)
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
		require.True(t, equal(mine, d.ours, c.unit()), "%s is %v by our definition, got %v", quantity, d.ours, mine)
		return differs
	}
	require.True(t, equal(mine, theirs, c.unit()), "%s: %s states %v, got %v", quantity, c.ID, theirs, mine)
	return ran
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
	t *testing.T, c oracleCase, aggregates map[string]map[string]float64, quantities []string, answers []reference.Answer,
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
		case "request_count", "error_request_count", "total_osl":
			requireTotals(t, quantity, stated["avg"], answers)
			continue
		}
		name := quantity
		if known, ok := perRequest[quantity]; ok {
			name = known
		}
		var values []float64
		for _, answer := range answers {
			switch {
			case quantity == pooled:
				values = append(values, inUnit(answer.InterChunk, c.unit())...)
			case answer.Outcome == names.OutcomeSuccess:
				values = append(values, quantityOf(t, name, answer, c.unit()).(float64))
			}
		}
		requireLinear(t, quantity, stated, values, 2e-6/c.unit().Seconds())
	}
	if failures, ok := c.Expected["failures"]; ok {
		requireTotals(t, "error_request_count", parse[float64](t, failures), answers)
	}
}

func requireTotals(t *testing.T, quantity string, stated float64, answers []reference.Answer) {
	t.Helper()
	totals := map[string]float64{}
	for _, answer := range answers {
		if answer.Outcome != names.OutcomeSuccess {
			totals["error_request_count"]++
			continue
		}
		totals["request_count"]++
		totals["total_osl"] += float64(answer.OutputTokens)
	}
	require.InDelta(t, stated, totals[quantity], 1e-3, quantity)
}

func requireLinear(t *testing.T, quantity string, stated map[string]float64, values []float64, tolerance float64) {
	t.Helper()
	slices.Sort(values)
	for name, value := range stated {
		var mine float64
		switch name {
		case "mean", "avg":
			mine = reference.Mean(values)
		case "min":
			mine = values[0]
		case "max":
			mine = values[len(values)-1]
		case "count":
			mine = float64(len(values))
		case "std":
			continue
		default:
			mine = reference.Linear(values, rankOf(t, name))
		}
		require.InDelta(t, value, mine, tolerance+1e-6*value, "%s %s", quantity, name)
	}
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
			if c.Failure == "" {
				values = append(values, time.Duration(c.Chunks[0].At-c.Start).Seconds()*1e3)
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
