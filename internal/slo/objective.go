// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import "time"

// Objective is the share of requests that must be good for one SLO.
type Objective struct {
	// SLO is the name of an SLO that token_latency defines, or `all`.
	SLO string `mapstructure:"slo"`
	// Objective is the share of good requests, between 0 and 1, both excluded.
	Objective float64 `mapstructure:"objective" use:"a number, such as 0.95"`
	// Window is the length of the error budget's window.
	Window time.Duration `mapstructure:"window" use:"hours, such as 720h for 30 days"`

	// prevent unkeyed literal initialization
	_ struct{}
}
