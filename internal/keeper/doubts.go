// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// unjudged returns the SLOs of objectives without a verdict, and the facts about them.
func (k *Keeper) unjudged() (slo.Unjudged, diagnostics.Facts) {
	u := k.Tracker.Unjudged(k.settings.Now())
	return u, diagnostics.Facts{Cases: u.Requests, All: u.Requests, Ran: u.Ran}
}

// doubtObjectives reports objectives without a verdict: those that no component of this process defines if any defines SLOs,
// else all, as another Collector may define them.
func (k *Keeper) doubtObjectives() {
	u, facts := k.unjudged()
	mistake, objectives, slos := diagnostics.ObjectiveUnseen, u.SLOs, u.Seen
	if defined := definedSLOs(); len(defined) > 0 && !mistake.SeenIn(facts) {
		mistake, slos = diagnostics.ObjectiveUndefined, defined
		objectives = slices.DeleteFunc(objectives, func(slo string) bool { return slo == names.SLOAll || slices.Contains(defined, slo) })
	}
	if len(objectives) > 0 {
		k.doubts.Report(mistake, facts, strings.Join(objectives, ", "), zap.Strings("objectives", objectives), zap.Strings("slos_seen", slos))
	}
}

// definedSLOs returns the names of the SLOs that components of this process define, sorted.
func definedSLOs() []string {
	all := map[string]bool{}
	for _, component := range inprocess.SLOs.All() {
		for _, d := range component {
			all[names.CleanLabel(d.Name)] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// doubtDimensions reports each dimension without a value. The default ones are spelled right, and failures are rare.
func (k *Keeper) doubtDimensions() {
	if k.Engine == nil {
		return
	}
	defaults := series.NewDefaultConfig().Dimensions.Names()
	unused, requests := k.Engine.UnusedDimensions()
	for _, i := range unused {
		name := k.settings.Config.Series.Dimensions[i].Attribute
		if name != names.ErrorType && !slices.Contains(defaults, name) {
			k.doubts.Report(diagnostics.DimensionUnused, diagnostics.Facts{Cases: int64(requests), All: int64(requests)}, name, zap.String("dimension", name))
		}
	}
}

// doubtConventions reports requests that the metrics of conventions misrepresent.
func (k *Keeper) doubtConventions() {
	if k.Engine == nil || k.Engine.Standard == nil {
		return
	}
	faults := k.Engine.Standard.Faults()
	for _, fault := range [...]struct {
		found   bool
		mistake diagnostics.Mistake
	}{
		{faults.Overflow, diagnostics.ConventionsOverflow},
		{faults.Doubled, diagnostics.ConventionsDoubled},
		{faults.WithoutChunks, diagnostics.ConventionsWithoutChunks},
	} {
		if fault.found {
			k.doubts.Report(fault.mistake, diagnostics.Facts{Cases: 1}, "")
		}
	}
}
