// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// higherIsBetter lists the indicators for which an upper threshold makes no sense, and what to use
// instead.
var higherIsBetter = map[string]string{
	names.OutputTokenRate:  "time_per_output_token",
	names.RequestTokenRate: "request.duration",
	names.FluidityIndex:    "inter_token_latency.p99",
}

// indicator is an attribute that can be judged.
type indicator struct {
	inSeconds bool
	// of returns the value that Annotate writes. It is nil for an attribute that only join or roll_up
	// write.
	of func(derived *latency.Latency) latency.Measure
}

// in returns the value of the indicator, as Measured reads it from the span.
func (i *indicator) in(derived *latency.Latency) latency.Measure {
	if i.of == nil {
		return latency.Measure{}
	}
	if m := i.of(derived); m.Known {
		return m
	}
	return latency.Measure{} // of a stall duration that was rejected, the count is still there
}

// indicators holds the indicators by attribute, apart from the outcome.
var indicators = func() map[string]indicator {
	count := func(n int64, known bool) latency.Measure { return latency.Measure{Value: float64(n), Known: known} }
	all := map[string]indicator{
		names.NetworkDuration:   {inSeconds: true},
		names.TraceTimeToAnswer: {inSeconds: true},
		names.StallCount: {of: func(l *latency.Latency) latency.Measure {
			return count(l.StallCount, measure(l, latency.StallDuration).Known)
		}},
		names.ChunkCount: {of: func(l *latency.Latency) latency.Measure { return count(l.ChunkCount.Value, l.ChunkCount.Known) }},
		names.ClockAnomalies: {of: func(l *latency.Latency) latency.Measure {
			return count(l.ClockAnomalies, l.ClockAnomalies > 0)
		}},
	}
	for i, name := range measureNames {
		if quantity := latency.Quantity(i); higherIsBetter[name] == "" {
			all[name] = indicator{isInSeconds(quantity), func(l *latency.Latency) latency.Measure { return measure(l, quantity) }}
		}
	}
	for i := range latency.NumStatistics {
		all[interToken.statistics[i]] = indicator{true, func(l *latency.Latency) latency.Measure { return statistic(&l.InterToken, i) }}
		all[interChunk.statistics[i]] = indicator{true, func(l *latency.Latency) latency.Measure { return statistic(&l.InterChunk, i) }}
	}
	return all
}()

// isInSeconds reports whether a quantity is a duration.
func isInSeconds(quantity latency.Quantity) bool {
	switch quantity {
	case latency.DecodeShare, latency.OutputTokenRate, latency.RequestTokenRate, latency.FluidityIndex:
		return false
	default:
		return true
	}
}

// measure returns a quantity as it is written: a duration in whole nanoseconds, and no stalls of zero.
func measure(derived *latency.Latency, quantity latency.Quantity) latency.Measure {
	m := derived.Measures[quantity]
	switch {
	case quantity == latency.StallDuration && derived.StallCount == 0:
		return latency.Measure{}
	case isInSeconds(quantity):
		m.Value = ToNanosecond(m.Value)
	}
	return m
}

// statistic returns a statistic of gaps as it is written: in whole nanoseconds.
func statistic(d *latency.Distribution, s latency.Statistic) latency.Measure {
	m := d[s]
	m.Value = ToNanosecond(m.Value)
	return m
}
