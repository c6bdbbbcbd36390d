// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// readKeys are the attributes that the reader reads, always in the same order.
var readKeys = slices.Sorted(maps.Keys(fields))

// setAny sets one attribute that the reader reads, to a value of any type. A step has ten
// bytes: the attribute, the type and a number.
func setAny(attributes pcommon.Map, step []byte, text string, raw []byte) {
	key := names.GenAIRequestModel
	if i := int(step[0]) % (len(fields) + 1); i < len(fields) {
		key = readKeys[i]
	}
	bits := binary.LittleEndian.Uint64(step[2:])
	switch step[1] % 8 {
	case 0:
		attributes.PutInt(key, int64(bits))
	case 1:
		attributes.PutDouble(key, math.Float64frombits(bits))
	case 2:
		attributes.PutStr(key, text)
	case 3:
		attributes.PutStr(key, strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64))
	case 4:
		attributes.PutBool(key, bits&1 != 0)
	case 5:
		attributes.PutEmptyBytes(key).FromRaw(raw)
	case 6:
		list := attributes.PutEmptySlice(key)
		for i := range bits % (2 * slo.MaxSLOs) {
			list.AppendEmpty().SetStr(text + strconv.FormatUint(i, 10))
		}
		list.AppendEmpty().SetInt(int64(bits))
	case 7:
		attributes.PutEmpty(key)
	}
}

// FuzzRead reads spans with any attributes. Every number of a request is plausible, every
// label clean, every list bounded, each span counted once, and no span changes what is
// read from the next one.
func FuzzRead(f *testing.F) {
	var s sketch.Sketch
	s.Add(0.02, 5)
	encoded := s.AppendBinary(nil)
	step := func(field, kind byte, bits uint64) []byte {
		return binary.LittleEndian.AppendUint64([]byte{field, kind}, bits)
	}
	for kind := range byte(8) {
		var every []byte
		for i := range readKeys {
			every = append(every, step(byte(i), kind, math.Float64bits(0.5))...)
		}
		f.Add(every, "success", encoded)
	}
	at := func(key string) byte { return byte(slices.Index(readKeys, key)) }
	f.Add(step(at(names.Aggregated), 4, 1), "success", encoded)
	f.Add(slices.Concat(
		step(at(names.Outcome), 2, 0), step(at(names.SLOMet), 1, math.Float64bits(math.NaN())),
		step(at(names.SLOBreached), 3, math.Float64bits(math.Inf(1))), step(at("tokenpulse.request.duration"), 0, math.MaxUint64),
	), "\xff", []byte{1})
	o := &Options{Dimensions: NewDimensions(series.DimensionsOf(names.GenAIRequestModel)), Objectives: slo.Names{"a0": true}}
	f.Fuzz(func(t *testing.T, steps []byte, text string, raw []byte) {
		fuzzed := ptrace.NewSpan()
		fuzzed.SetStartTimestamp(1)
		fuzzed.SetEndTimestamp(1e9)
		for ; len(steps) >= 10; steps = steps[10:] {
			setAny(fuzzed.Attributes(), steps, text, raw)
		}
		plain := ptrace.NewSpan()
		plain.Attributes().PutDouble("tokenpulse.time_to_first_token", 0.5)

		traces := ptrace.NewTraces()
		all := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
		for _, span := range []ptrace.Span{fuzzed, plain, fuzzed, plain} {
			span.CopyTo(all.AppendEmpty())
		}
		var read []*series.Contribution
		now := time.Now()
		tally := Read(traces, o, now, func(req *series.Contribution) series.Recorded {
			requirePlausible(t, req)
			read = append(read, copyOf(req))
			return series.Recorded{}
		})
		require.EqualValues(t, 4, tally.Requests+tally.Traces+tally.Aggregated+tally.Ignored)
		require.Len(t, read, int(tally.Requests+tally.Traces))
		alone := copyOf(&series.Contribution{
			Dimensions: []string{""}, Standard: []string{}, Arrival: now, Verdicts: slo.VerdictSet{Objectives: o.Objectives},
		})
		alone.SetValue(numbers.TimeToFirstToken, 0.5)
		last := read[len(read)-1]
		alone.Gaps, alone.ChunkTokens, alone.AudioGaps = last.Gaps, last.ChunkTokens, last.AudioGaps
		require.Equal(t, alone, read[len(read)-1], "after another span")
		if len(read) == 4 {
			require.Equal(t, read[0], read[2], "read twice")
		}
	})
}

func copyOf(req *series.Contribution) *series.Contribution {
	c := *req
	c.Dimensions = slices.Clone(req.Dimensions)
	c.Verdicts = slo.VerdictSet{Objectives: req.Verdicts.Objectives}
	req.Verdicts.All(func(name string, verdict slo.Verdict) bool {
		if name != names.SLOAll {
			c.Verdicts.Add(name, verdict)
		}
		return true
	})
	return &c
}

func requirePlausible(t *testing.T, req *series.Contribution) {
	t.Helper()
	for q := range numbers.InterTokenLatency {
		v, _ := req.Value(q)
		require.True(t, v >= 0 && v <= series.Largest, "quantity %d is %v", q, v)
	}
	for _, c := range numbers.Sums {
		v, _ := req.Value(c)
		require.True(t, v >= 0 && v <= series.Largest && (v == math.Trunc(v) || c == numbers.StallDuration), "count %d is %v", c, v)
	}
	for q := numbers.Singles; q < numbers.Distributions; q++ {
		d := req.Distribution(q)
		require.LessOrEqual(t, len(d.Sketch), largestSketch)
		require.True(t, d.Max >= 0 && d.Max <= series.Largest, "the largest value of %s is %v", q.Name(), d.Max)
	}
	for _, label := range append([]string{req.Vantage}, req.Dimensions...) {
		require.Equal(t, names.CleanLabel(label), label)
	}
	verdicts := 0
	req.Verdicts.All(func(name string, _ slo.Verdict) bool {
		require.Equal(t, names.CleanLabel(name), name)
		verdicts++
		return true
	})
	require.LessOrEqual(t, verdicts, 1+slo.MaxSLOs+1, "all, others, and those with an objective")
}
