// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/settings"
)

func TestObjectiveProblems_NameKeyAndRemedy(t *testing.T) {
	tests := map[string]struct {
		objective Objective
		want      string // empty: valid
	}{
		"valid":                {Objective{SLO: "B", Objective: 0.95, Window: 720 * time.Hour}, ""},
		"all":                  {Objective{SLO: "all", Objective: 0.95, Window: 720 * time.Hour}, ""},
		"shortest window":      {Objective{SLO: "B", Objective: 0.95, Window: time.Hour}, ""},
		"longest window":       {Objective{SLO: "B", Objective: 0.95, Window: 2160 * time.Hour}, ""},
		"no name":              {Objective{Objective: 0.95, Window: time.Hour}, "`objectives::1::slo` is empty; enter a name from `slos`"},
		"duplicate name":       {Objective{SLO: "A", Objective: 0.95, Window: time.Hour}, "`objectives::1::slo` is \"A\", which already has an objective at `objectives::0`; remove one"},
		"objective 0":          {Objective{SLO: "B", Window: time.Hour}, "`objectives::1::objective` is 0; use the share"},
		"objective 1":          {Objective{SLO: "B", Objective: 1, Window: time.Hour}, "`objectives::1::objective` is 1;"},
		"objective in percent": {Objective{SLO: "B", Objective: 95, Window: time.Hour}, "`objectives::1::objective` is 95; use the share of good requests, above 0 and below 1, such as 0.95"},
		"objective NaN":        {Objective{SLO: "B", Objective: math.NaN(), Window: time.Hour}, "`objectives::1::objective` is NaN"},
		"window too short":     {Objective{SLO: "B", Objective: 0.95, Window: time.Hour - 1}, "`objectives::1::window` is 59m59.999999999s; use 1h to 2160h"},
		"window too long":      {Objective{SLO: "B", Objective: 0.95, Window: 2160*time.Hour + 1}, "`objectives::1::window` is 2160h0m0.000000001s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := errors.Join(objectiveProblems([]Objective{{SLO: "A", Objective: 0.5, Window: time.Hour}, test.objective})...)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
	require.ErrorContains(t, errors.Join(objectiveProblems(make([]Objective, 65))...), "`objectives` has 65 entries; the maximum is 64")
}

func TestObjectiveUnmarshal_WindowInDaysNamesTheRemedy(t *testing.T) {
	var c struct {
		Objectives []Objective `mapstructure:"objectives"`
	}
	objective := map[string]any{"slo": "a", "objective": 0.9, "window": "30d"}
	unmarshal := func() error {
		return settings.Unmarshal(confmap.NewFromStringMap(map[string]any{"objectives": []any{objective}}), &c)
	}
	require.ErrorContains(t, unmarshal(), "`objectives::0::window` is \"30d\"; use hours, such as 720h for 30 days")
	objective["window"] = "48h"
	require.NoError(t, unmarshal())
	require.Equal(t, 48*time.Hour, c.Objectives[0].Window)
	delete(objective, "window")
	require.NoError(t, unmarshal())
	require.Equal(t, 720*time.Hour, c.Objectives[0].Window)
}
