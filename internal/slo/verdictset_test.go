// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

func verdictsIn(s *VerdictSet) (all []namedVerdict) {
	for slo, verdict := range s.All {
		all = append(all, namedVerdict{slo, verdict})
	}
	return all
}

// The table is the rule for `all` in docs/definitions.md, case by case.
func TestVerdictSet_All(t *testing.T) {
	for situation, test := range map[string]struct {
		slos   []string
		ending Ending
		want   Verdict
	}{
		"finished, every SLO met":                {[]string{"ga", "gb"}, Finished, Good},
		"finished, one SLO breached":             {[]string{"ga", "bb"}, Finished, Bad},
		"finished, one SLO not eligible":         {[]string{"ga", "nb"}, Finished, Good},
		"finished, no SLO eligible":              {[]string{"na", "nb"}, Finished, NotEligible},
		"failed, every SLO met":                  {[]string{"ga"}, Failed, Bad},
		"failed, no SLO eligible":                {[]string{"na"}, Failed, Bad},
		"cancelled in a stall, every SLO met":    {[]string{"ga"}, Stalled, Bad},
		"cut by the Collector":                   {[]string{"na"}, Cut, NotEligible},
		"cut by the Collector, a breach claimed": {[]string{"ba"}, Cut, NotEligible},
		"client mistake":                         {[]string{"na", "nb"}, Mistaken, NotEligible},
		"client mistake, met by a forged span":   {[]string{"ga"}, Mistaken, NotEligible},
		"client mistake that one SLO counts":     {[]string{"na", "bb"}, Mistaken, Bad},
	} {
		t.Run(situation, func(t *testing.T) {
			s := verdicts(test.slos...)
			s.End(test.ending)
			all := verdictsIn(s)
			require.Len(t, all, 1+len(test.slos))
			require.Equal(t, namedVerdict{names.SLOAll, test.want}, all[0])
		})
	}
}

func TestVerdictSet_NoSLOGivesNoVerdictOnAll(t *testing.T) {
	var s VerdictSet
	s.End(Failed)
	for slo := range s.All {
		t.Errorf("a verdict on %s although no SLO applies", slo)
	}
	require.True(t, s.Empty())
}

func TestVerdictSet_ResetForgetsTheEnding(t *testing.T) {
	s := verdicts("ga")
	s.End(Failed)
	s.Reset()
	s.Add("a", Good)
	require.Equal(t, []namedVerdict{{names.SLOAll, Good}, {"a", Good}}, verdictsIn(s))
}
