// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/settings"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Objective is an entry of `objectives`.
type Objective slo.Objective

// Limits of an objective's window, and its default.
const (
	minObjectiveWindow     = time.Hour
	maxObjectiveWindow     = 90 * 24 * time.Hour
	defaultObjectiveWindow = 30 * 24 * time.Hour
)

// Unmarshal sets the defaults of a list entry, which a default configuration cannot
// hold.
func (o *Objective) Unmarshal(conf *confmap.Conf) error {
	o.Window = defaultObjectiveWindow
	return conf.Unmarshal(o)
}

// SLONames holds the SLOs that entries of a list name, with the index of the first entry.
type SLONames map[string]int

// Add adds the SLO of entry i of a list. It returns an error if the entry names none, or one of an entry before: twice says what that one
// has, with its index.
func (n SLONames) Add(list string, i int, slo, twice string) error {
	name := names.CleanLabel(slo)
	if name == "" {
		return fmt.Errorf("`%s::%d::slo` is empty; enter a name from `slos` of token_latency, or %q for all SLOs combined", list, i, names.SLOAll)
	}
	if first, ok := n[name]; ok {
		return fmt.Errorf("`%s::%d::slo` is %q, which "+twice+"; remove one", list, i, slo, first)
	}
	n[name] = i
	return nil
}

// objectiveProblems returns an error for each invalid key.
func objectiveProblems(objectives []Objective) (errs settings.Problems) {
	errs.Unless(len(objectives) <= slo.MaxSLOs, "`objectives` has %d entries; the maximum is %d", len(objectives), slo.MaxSLOs)
	used := SLONames{}
	for i, o := range objectives {
		if err := used.Add("objectives", i, o.SLO, "already has an objective at `objectives::%d`"); err != nil {
			errs = append(errs, err)
		}
		errs.Unless(o.Objective > 0 && o.Objective < 1,
			"`objectives::%d::objective` is %v; use the share of good requests, above 0 and below 1, such as 0.95", i, o.Objective)
		errs.Unless(minObjectiveWindow <= o.Window && o.Window <= maxObjectiveWindow,
			"`objectives::%d::window` is %v; use 1h to 2160h, such as 720h for 30 days", i, o.Window)
	}
	return errs
}
