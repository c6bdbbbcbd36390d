// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/settings"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// SLOConfig is a service level objective on single requests: an indicator and its upper threshold, or
// the outcome.
// Attributes are looked up on the span, then on its resource.
type SLOConfig struct {
	// Name identifies the SLO in verdicts. "all" is reserved for all SLOs together.
	Name string `mapstructure:"name"`
	// Indicator is an attribute of this processor without the prefix "tokenpulse.", such as
	// time_per_output_token or inter_token_latency.p99. The indicator outcome has no threshold: a
	// success is good, a cancelled request is not eligible, and all others are bad.
	Indicator string `mapstructure:"indicator"`
	// Threshold is the largest good value: a duration with its unit, such as 50ms, or a number if
	// the indicator is a count or a share.
	Threshold any `mapstructure:"threshold"`
	// ThresholdAttribute is an attribute that replaces the threshold on requests that have it, in
	// seconds or with a unit. A value that is not positive is ignored.
	ThresholdAttribute string `mapstructure:"threshold_attribute"`
	// ClientErrors is "bad" if client mistakes, such as requests with a wrong API key, are bad. Otherwise they
	// are not eligible.
	ClientErrors string `mapstructure:"client_errors"`
	// Match holds attributes and the values that all of them must have for the SLO to apply.
	Match map[string]string `mapstructure:"match" use:"one text, in quotes; for several, use match_regexp, such as 'a|b'"`
	// MatchRegexp holds attributes and RE2 expressions that their whole values must match.
	MatchRegexp map[string]string `mapstructure:"match_regexp" use:"one RE2 expression, in quotes, such as 'a|b'"`
	// MatchRange holds attributes and the ranges that their numbers must lie in.
	MatchRange map[string]Range `mapstructure:"match_range" use:"a section with the keys min, max"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ confmap.Validator = (*SLOConfig)(nil)

// Validate reports every invalid setting.
func (c *SLOConfig) Validate() error {
	var errs settings.Problems
	errs.Unless(c.Name != "", "`name` is missing; give the SLO a name, such as chat-tpot")
	errs.Unless(c.Name != names.SLOAll, "`name` is %q, which is reserved for all SLOs together; choose another", c.Name)
	errs = append(errs, c.validateIndicator())
	errs.Unless(c.ClientErrors == "" || c.ClientErrors == names.VerdictBad,
		"`client_errors` is %q; use bad to count client mistakes as bad, or remove it: they are then not eligible", c.ClientErrors)
	return errors.Join(append(errs, c.validateMatch()...)...)
}

func (c *SLOConfig) validateIndicator() error {
	name := names.Prefix + c.Indicator
	if name == names.Outcome {
		return c.validateNoThreshold()
	}
	indicator, known := byAttribute[name]
	if other := indicator.Row().Instead; known && other != "" {
		return fmt.Errorf("`indicator` is %q, which cannot have an upper threshold, because higher is better; use %s", c.Indicator, other)
	}
	if !known || !indicator.Row().Judged {
		return fmt.Errorf("unknown indicator %q; valid indicators: %s", c.Indicator, indicatorNames())
	}
	_, err := c.threshold(indicator.Row().Unit == numbers.Seconds)
	return err
}

func indicatorNames() string {
	all := []string{names.Outcome}
	for id := range numbers.Count {
		if id.Row().Judged {
			all = append(all, id.Attribute())
		}
	}
	slices.Sort(all)
	return strings.ReplaceAll(strings.Join(all, ", "), names.Prefix, "")
}

// validateNoThreshold reports the settings that the outcome does not have.
func (c *SLOConfig) validateNoThreshold() error {
	var errs settings.Problems
	errs.Unless(c.Threshold == nil, "`threshold` is %v, but %s has none: a success is good; remove `threshold`", c.Threshold, c.Indicator)
	errs.Unless(c.ThresholdAttribute == "", "`threshold_attribute` is %q, but %s has no threshold; remove `threshold_attribute`", c.ThresholdAttribute, c.Indicator)
	return errors.Join(errs...)
}

// threshold returns the threshold in the indicator's unit.
func (c *SLOConfig) threshold(inSeconds bool) (float64, error) {
	var value float64
	switch configured := c.Threshold.(type) {
	case int:
		value = float64(configured)
	case float64:
		value = configured
	}
	if inSeconds {
		text, _ := c.Threshold.(string)
		d, _ := time.ParseDuration(text)
		value = float64(d) / float64(time.Second)
	}
	switch {
	case value > 0 && value <= attributes.MaxNumber:
		return value, nil
	case c.Threshold == nil && inSeconds:
		return 0, fmt.Errorf("`threshold` is missing; %s needs a positive duration with a unit, such as 50ms", c.Indicator)
	case c.Threshold == nil:
		return 0, fmt.Errorf("`threshold` is missing; %s needs a positive number", c.Indicator)
	case inSeconds:
		return 0, fmt.Errorf("`threshold` is %v; %s needs a positive duration with a unit, such as 50ms", c.Threshold, c.Indicator)
	default:
		return 0, fmt.Errorf("`threshold` is %v; %s needs a positive number", c.Threshold, c.Indicator)
	}
}

func (c *SLOConfig) validateMatch() (errs settings.Problems) {
	for attribute, pattern := range c.MatchRegexp {
		_, err := compile(pattern)
		errs.Unless(err == nil, "`match_regexp` of %s is %q; use a valid RE2 expression: %w", attribute, pattern, err)
		_, both := c.Match[attribute]
		errs.Unless(!both, "`match` and `match_regexp` both have %s; remove one", attribute)
	}
	for attribute, limits := range c.MatchRange {
		err := limits.problem()
		errs.Unless(err == nil, "`match_range` of %s %w", attribute, err)
		for key, others := range map[string]map[string]string{"match": c.Match, "match_regexp": c.MatchRegexp} {
			_, both := others[attribute]
			errs.Unless(!both, "`%s` and `match_range` both have %s; remove one", key, attribute)
		}
	}
	if name, ok := c.Match[names.Vantage]; ok {
		v, _ := timeline.ParseVantage(name)
		errs.Unless(v != timeline.VantageUnspecified, "`match` of %s is %q; valid values: client, gateway, server, engine", names.Vantage, name)
	}
	return errs
}

// compile returns a pattern for the whole value. It first compiles the expression by itself, so that
// an unbalanced parenthesis cannot pair with the added group.
func compile(expression string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(expression); err != nil {
		return nil, err
	}
	return regexp.Compile("^(?:" + expression + ")$")
}
