// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sloexport

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// describe returns when a request is good for an SLO, and to which requests it applies.
func describe(c *judge.SLOConfig) string {
	text := c.Indicator + " success"
	if c.Threshold != nil {
		text = fmt.Sprintf("%s at most %v", c.Indicator, c.Threshold)
	}
	if c.ThresholdAttribute != "" {
		text += ", or " + c.ThresholdAttribute + " if the request has it"
	}
	if c.ClientErrors == names.VerdictBad {
		text += ", client errors bad"
	}
	var conditions []string
	for _, attribute := range slices.Sorted(maps.Keys(c.Match)) {
		conditions = append(conditions, attribute+" is "+c.Match[attribute])
	}
	for _, attribute := range slices.Sorted(maps.Keys(c.MatchRegexp)) {
		conditions = append(conditions, attribute+" matches "+c.MatchRegexp[attribute])
	}
	for _, attribute := range slices.Sorted(maps.Keys(c.MatchRange)) {
		limits := c.MatchRange[attribute]
		condition := fmt.Sprintf("%s is at least %v", attribute, limits.Min)
		if limits.Max != nil {
			condition += fmt.Sprintf(" and below %v", *limits.Max)
		}
		conditions = append(conditions, condition)
	}
	if len(conditions) > 0 {
		text += ", where " + strings.Join(conditions, " and ")
	}
	return text
}

// percent returns a share as a percentage without the error of the multiplication: 57 for 0.57.
func percent(share float64) float64 { return math.Round(share*1e12) / 1e10 }

func percentText(share float64) string { return strconv.FormatFloat(percent(share), 'f', -1, 64) }

// promDuration returns a duration as Prometheus writes it, such as 30d.
func promDuration(d time.Duration) string { return model.Duration(d).String() }
