// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/settings"
)

func TestConfig_NamesWhatCannotBeUsed(t *testing.T) {
	for message, change := range map[string]func(*Config){
		"": func(*Config) {},
		"`liveness::bound` is 999ms; use at least 1s, with a unit":                                           func(c *Config) { c.Bound = 999 * time.Millisecond },
		"`liveness::bound` is 5ns; use at least 1s, with a unit":                                             func(c *Config) { c.Bound = 5 },
		"`liveness::factor` is 0.9; use a number from 1 to 100":                                              func(c *Config) { c.Factor = 0.9 },
		"`liveness::factor` is 101; use a number from 1 to 100":                                              func(c *Config) { c.Factor = 101 },
		"`liveness::factor` is NaN; use a number from 1 to 100":                                              func(c *Config) { c.Factor = math.NaN() },
		"`liveness::max_bound` is 4s, less than `bound`; use at least 5s":                                    func(c *Config) { c.MaxBound = 4 * time.Second },
		"`liveness::max_engines` is 0; use at least 1":                                                       func(c *Config) { c.MaxEngines = 0 },
		"`liveness::factor` is 0; use a number from 1 to 100\n`liveness::max_engines` is -1; use at least 1": func(c *Config) { c.Factor, c.MaxEngines = 0, -1 },
	} {
		config, errs := DefaultConfig(), settings.Problems{}
		change(&config)
		config.Check(&errs, "liveness")
		if message == "" {
			require.Empty(t, errs)
		} else {
			require.EqualError(t, errors.Join(errs...), message)
		}
	}
}
