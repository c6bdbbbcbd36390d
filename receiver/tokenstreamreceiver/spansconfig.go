// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"errors"
	"fmt"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/sampling"
)

// SpansConfig selects the streams that become spans, of a receiver in a metrics pipeline.
type SpansConfig struct {
	// Share is the share of the streams that become spans, by trace ID: between 0 and 1.
	Share float64 `mapstructure:"share"`
	// Breached makes each stream that breaches an SLO a span, too.
	Breached bool `mapstructure:"breached"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Validate reports a share out of range, and settings that select no span. Config reports breaches
// without SLOs.
func (c *SpansConfig) Validate() error {
	switch {
	case !(c.Share >= 0 && c.Share <= 1):
		return fmt.Errorf("`share` is %v; use a number from 0 to 1, such as 0.01 for 1%%", c.Share)
	case c.Share == 0 && !c.Breached:
		return errors.New("`share` is 0 and `breached` is false, which selects no span; set one of them, or remove the receiver from its traces pipelines")
	case c.Share > 0 && c.Share < sampling.MinSamplingProbability:
		return fmt.Errorf("`share` is %v; use at least %v, or 0 for none", c.Share, sampling.MinSamplingProbability)
	}
	return nil
}
