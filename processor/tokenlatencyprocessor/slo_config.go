package tokenlatencyprocessor

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// SLOConfig is a service level objective on a request: which number of it has to
// be at or under which threshold.
type SLOConfig struct {
	// Name is what the verdict is written under.
	Name string `mapstructure:"name"`
	// Indicator is an attribute of this processor without its prefix, such as
	// time_per_output_token or inter_token_latency.p99.
	Indicator string `mapstructure:"indicator"`
	// Threshold is a duration such as 50ms, or a number where the indicator is none.
	Threshold any `mapstructure:"threshold"`
	// ThresholdAttribute names an attribute that replaces the threshold where a
	// request has it: seconds, or a duration with its unit. It is looked up on the
	// span, then on its resource.
	ThresholdAttribute string `mapstructure:"threshold_attribute"`
	// Match holds attributes and the values that they must have. Each is looked up
	// on the span, then on its resource.
	Match map[string]string `mapstructure:"match"`
	// MatchRegexp holds attributes and regular expressions that their whole value
	// must match.
	MatchRegexp map[string]string `mapstructure:"match_regexp"`
	// Vantage is the vantage that the request must have been seen from. Empty means
	// any.
	Vantage string `mapstructure:"vantage"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ confmap.Validator = (*SLOConfig)(nil)

// moreIsBetter lists the indicators that no threshold at or under makes sense for,
// and what to use in their place.
var moreIsBetter = map[string]string{
	names.OutputTokenRate:  "time_per_output_token",
	names.RequestTokenRate: "request.duration",
	names.FluidityIndex:    "inter_token_latency.p99",
}

// indicators lists the attributes that can be judged, and whether they are in
// seconds.
var indicators = func() map[string]bool {
	all := map[string]bool{
		names.NetworkDuration: true,
		names.StallCount:      false,
		names.ChunkCount:      false,
		names.ClockAnomalies:  false,
	}
	for quantity, name := range measureNames {
		if moreIsBetter[name] == "" {
			all[name] = latency.Quantity(quantity) != latency.DecodeShare
		}
	}
	for _, d := range []distribution{interToken, interChunk} {
		for _, name := range d.statistics {
			all[name] = true
		}
	}
	return all
}()

// Validate reports every setting that cannot be used.
func (c *SLOConfig) Validate() error {
	var errs error
	if c.Name == "" {
		errs = errors.Join(errs, errors.New("name is empty: give the SLO a name, such as chat-tpot"))
	}
	if c.Name == names.SLOAll {
		errs = errors.Join(errs, fmt.Errorf("name is %q, which stands for all SLOs together: choose another", c.Name))
	}
	errs = errors.Join(errs, c.validateIndicator(), c.validateMatch())
	switch c.Vantage {
	case "", names.VantageClient, names.VantageGateway, names.VantageServer, names.VantageEngine:
	default:
		errs = errors.Join(errs, fmt.Errorf("vantage is %q: choose client, gateway, server or engine, or leave it out for any", c.Vantage))
	}
	return errs
}

func (c *SLOConfig) validateIndicator() error {
	name := names.Prefix + c.Indicator
	if other := moreIsBetter[name]; other != "" {
		return fmt.Errorf("indicator is %q, of which more is better, and an SLO wants a number at or under its threshold: use %s", c.Indicator, other)
	}
	inSeconds, known := indicators[name]
	if !known {
		return fmt.Errorf("indicator is %q: choose one of %s", c.Indicator, strings.Join(indicatorNames(), ", "))
	}
	_, err := c.threshold(inSeconds)
	return err
}

func indicatorNames() []string {
	var all []string
	for name := range indicators {
		all = append(all, strings.TrimPrefix(name, names.Prefix))
	}
	slices.Sort(all)
	return all
}

// threshold returns the threshold in the indicator's unit.
func (c *SLOConfig) threshold(inSeconds bool) (float64, error) {
	var value float64
	switch told := c.Threshold.(type) {
	case int:
		value = float64(told)
	case float64:
		value = told
	case string:
		d, err := time.ParseDuration(told)
		if err != nil || !inSeconds {
			return 0, c.badThreshold(inSeconds)
		}
		return positive(float64(d)/float64(time.Second), c.badThreshold(inSeconds))
	default:
		return 0, c.badThreshold(inSeconds)
	}
	if inSeconds { // 50 of what?
		return 0, c.badThreshold(inSeconds)
	}
	return positive(value, c.badThreshold(inSeconds))
}

func positive(value float64, otherwise error) (float64, error) {
	if !(value > 0 && value <= maxNumber) {
		return 0, otherwise
	}
	return value, nil
}

func (c *SLOConfig) badThreshold(inSeconds bool) error {
	if inSeconds {
		return fmt.Errorf("threshold is %v: %s needs a duration over 0 with its unit, such as 50ms", c.Threshold, c.Indicator)
	}
	return fmt.Errorf("threshold is %v: %s needs a number over 0", c.Threshold, c.Indicator)
}

func (c *SLOConfig) validateMatch() (errs error) {
	for attribute, pattern := range c.MatchRegexp {
		if _, err := compile(pattern); err != nil {
			errs = errors.Join(errs, fmt.Errorf("match_regexp of %s is %q, which is no regular expression (RE2 syntax): %w", attribute, pattern, err))
		}
		if _, both := c.Match[attribute]; both {
			errs = errors.Join(errs, fmt.Errorf("match and match_regexp both have %s: leave one out", attribute))
		}
	}
	return errs
}

// compile makes a pattern one of the whole value. It has to be one by itself: an
// unbalanced parenthesis must not find its half in what goes around it.
func compile(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, err
	}
	return regexp.Compile("^(?:" + pattern + ")$")
}
