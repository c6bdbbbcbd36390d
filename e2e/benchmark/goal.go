// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// goal is a bound for a measured number. The zero value means no goal.
type goal struct {
	atLeast, atMost float64
}

func (g goal) String() string {
	switch {
	case g.atLeast != 0:
		return fmt.Sprintf("at least %g", g.atLeast)
	case g.atMost != 0:
		return fmt.Sprintf("at most %g", g.atMost)
	default:
		return ""
	}
}

func (g goal) verdict(value float64) string {
	switch {
	case g == goal{}:
		return ""
	case g.atLeast != 0 && value < g.atLeast, g.atMost != 0 && value > g.atMost:
		return "no"
	default:
		return "yes"
	}
}

// row returns the cells of a number and its goal.
func (g goal) row(name string, value float64) []string {
	return []string{name, number(value), g.String(), g.verdict(value)}
}

// ratioRow returns the cells of a ratio, measured in several rounds, and its goal.
func (g goal) ratioRow(name string, ratios []float64) []string {
	middle := median(ratios)
	return []string{name, number(middle), spread(ratios), g.String(), g.verdict(middle)}
}
