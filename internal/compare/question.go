// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/canary"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Question is what is asked of a pair: `compare` of the configuration is a list of them.
type Question struct {
	Pair `mapstructure:",squash"`
	// Tolerance is how much worse the candidate may be, which neither fails it nor keeps it from passing: of an SLO the
	// odds of a bad request, of a percentile the latency, as a share. 0 is the default.
	Tolerance float64 `mapstructure:"tolerance"`
	// Alpha limits the probability of a wrong verdict. 0 is the default.
	Alpha float64 `mapstructure:"alpha"`
	// ExpectedShare is the candidate's share of the requests, as the load balancer has it. 0 if it is unknown.
	ExpectedShare float64 `mapstructure:"expected_share"`
}

// Pair identifies two values of a dimension, and what is compared: an SLO, or a percentile of an indicator.
type Pair struct {
	// Dimension is one of the series.
	Dimension string `mapstructure:"dimension" json:"dimension"`
	// Baseline and Candidate are values of it.
	Baseline  string `mapstructure:"baseline" json:"baseline"`
	Candidate string `mapstructure:"candidate" json:"candidate"`
	// Vantage is the only one that counts. Without it, that of the first request counts: several vantages see
	// the same request.
	Vantage string `mapstructure:"vantage" json:"vantage,omitempty"`
	// SLO is the name of one, or `all`.
	SLO string `mapstructure:"slo" json:"slo,omitempty"`
	// Indicator is a latency, and Percentile is in hundredths.
	Indicator  string  `mapstructure:"indicator" json:"indicator,omitempty"`
	Percentile float64 `mapstructure:"percentile" json:"percentile,omitempty"`
}

// Defaults of a Question.
const (
	DefaultAlpha               = 0.05
	defaultOddsTolerance       = 0.5
	defaultPercentileTolerance = 0.1
)

// Limits of a Question. A bucket of the histograms is 1.1% wide.
const (
	minTolerance, maxTolerance = 0.02, 10
	minAlpha, maxAlpha         = 1e-6, 0.5
)

// SetDefaults sets what is not given.
func (q *Question) SetDefaults() {
	if q.Alpha == 0 {
		q.Alpha = DefaultAlpha
	}
	switch {
	case q.Tolerance != 0:
	case q.SLO != "":
		q.Tolerance = defaultOddsTolerance
	default:
		q.Tolerance = defaultPercentileTolerance
	}
}

// Mistake is an invalid value of a question.
type Mistake struct{ Key, Message, Remedy string }

// Mistakes returns those of a question with defaults.
func (q *Question) Mistakes(dimensions []string) (all []Mistake) {
	unless := func(ok bool, key, remedy, format string, args ...any) {
		if !ok {
			all = append(all, Mistake{key, fmt.Sprintf(format, args...), remedy})
		}
	}
	configured := "use one of `dimensions`: " + strings.Join(dimensions, ", ")
	if len(dimensions) == 0 {
		configured = "add it to `dimensions`, which is empty"
	}
	unless(slices.Contains(dimensions, q.Dimension), "dimension", configured, "is %q", q.Dimension)
	unless(q.Baseline != "", "baseline", "enter the dimension's value for the version that serves now", "is empty")
	unless(q.Candidate != "", "candidate", "enter the dimension's value for the new version", "is empty")
	unless(q.Candidate == "" || q.Candidate != q.Baseline, "candidate", "enter another value than that of `baseline`", "is %q, too", q.Candidate)
	switch {
	case q.SLO == "" && q.Indicator == "":
		unless(false, "slo", "enter the name of an SLO, or an `indicator` and a `percentile`", "is empty")
	case q.SLO != "":
		unless(q.Indicator == "" && q.Percentile == 0, "indicator", "remove `slo`, or `indicator` and `percentile`", "is given, and `slo`, too")
	default:
		_, known := indicators[q.Indicator]
		unless(known, "indicator", "use one of "+strings.Join(Indicators, ", "), "is %q", q.Indicator)
		unless(q.Percentile >= 1 && q.Percentile < 100, "percentile", "use 1 to below 100, such as 95", "is %v", q.Percentile)
	}
	unless(q.Tolerance >= minTolerance && q.Tolerance <= maxTolerance, "tolerance", fmt.Sprintf("use a share from %v to %v, such as 0.1 for 10%%", minTolerance, maxTolerance), "is %v", q.Tolerance)
	unless(q.Alpha >= minAlpha && q.Alpha <= maxAlpha, "alpha", fmt.Sprintf("use a probability from %v to %v, such as 0.05", minAlpha, maxAlpha), "is %v", q.Alpha)
	unless(q.ExpectedShare >= 0 && q.ExpectedShare < 1, "expected_share", "use the candidate's share of all requests, above 0 and below 1, such as 0.1", "is %v", q.ExpectedShare)
	return all
}

// Indicators are the latencies that a request has once.
var (
	Indicators []string
	indicators = map[string]numbers.ID{}
)

func init() {
	for _, id := range numbers.Histograms {
		if row := id.Row(); id < numbers.Singles && row.Unit == numbers.Seconds && !id.OfTrace() {
			name := id.APIName()
			Indicators = append(Indicators, name)
			indicators[name] = id
		}
	}
}

// Key identifies the evidence that answers a question.
type Key struct {
	Pair
	// Tolerance is that of a percentile, whose thresholds depend on it.
	Tolerance float64 `json:"tolerance,omitempty"`
}

func (q *Question) key() Key {
	if q.SLO != "" {
		return Key{Pair: q.Pair}
	}
	return Key{q.Pair, math.Round(q.Tolerance*1e6) / 1e6}
}

func (k *Key) settings() canary.Settings {
	return canary.Settings{Percentile: k.Percentile / 100, Tolerance: k.Tolerance}
}
