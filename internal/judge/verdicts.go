// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// verdictNames holds the attribute that lists the SLOs with a verdict.
var verdictNames = [slo.Verdicts]string{slo.NotEligible: names.SLONotEligible, slo.Good: names.SLOMet, slo.Bad: names.SLOBreached}

// verdictValues holds the values of attributes with names.SLOVerdictPrefix.
var verdictValues = [slo.Verdicts]string{
	slo.NotEligible: names.SLOVerdictNotEligible, slo.Good: names.SLOVerdictMet, slo.Bad: names.SLOVerdictBreached,
}

// breachedNames are the lists with an entry for each SLO breached, in the same order.
var breachedNames = [...]string{names.SLOBreached, names.SLOBreachedIndicator, names.SLOBreachedThreshold}

// putVerdicts adds each SLO to the list of its verdict. For a breach it also adds the indicator and the
// threshold, which is empty for the outcome. Each breach has an attribute of its own, if detailed is true
// each verdict.
func putVerdicts(own pcommon.Map, verdicts []Verdict, detailed bool) {
	var count [slo.Verdicts]int
	for i := range verdicts {
		count[verdicts[i].Verdict]++
	}
	put := func(name string, verdict slo.Verdict, set func(entry pcommon.Value, v *Verdict)) {
		if count[verdict] == 0 {
			return
		}
		list := attributes.List(own, name)
		list.EnsureCapacity(list.Len() + count[verdict])
		for i := range verdicts {
			if verdicts[i].Verdict == verdict {
				set(list.AppendEmpty(), &verdicts[i])
			}
		}
	}
	for verdict, name := range verdictNames {
		put(name, slo.Verdict(verdict), func(entry pcommon.Value, v *Verdict) { entry.SetStr(v.SLO) })
	}
	put(names.SLOBreachedIndicator, slo.Bad, func(entry pcommon.Value, v *Verdict) { entry.SetStr(v.Indicator) })
	put(names.SLOBreachedThreshold, slo.Bad, func(entry pcommon.Value, v *Verdict) {
		if names.Prefix+v.Indicator != names.Outcome {
			entry.SetDouble(v.Threshold)
		}
	})
	for i := range verdicts {
		if v := &verdicts[i]; v.Verdict == slo.Bad || detailed {
			own.PutStr(v.attribute, verdictValues[v.Verdict])
		}
	}
}

// removeVerdicts removes the verdicts of earlier processors on SLOs that this one defines too. It
// keeps the verdicts on other SLOs.
func removeVerdicts(own pcommon.Map, defined map[string]bool) {
	for _, name := range [...]string{names.SLOMet, names.SLONotEligible, names.SLOOfTrace} {
		if all, ok := attributes.Listed(own, name); ok {
			all.RemoveIf(func(v pcommon.Value) bool { return defined[v.Str()] })
		}
		attributes.RemoveEmpty(own, name)
	}
	removeBreaches(own, defined)
	own.RemoveIf(func(name string, _ pcommon.Value) bool {
		slo, ok := strings.CutPrefix(name, names.SLOVerdictPrefix)
		return ok && defined[slo]
	})
}

// removeBreaches removes the entries of defined SLOs from each of the breachedNames. If the lists
// differ in length, entries cannot be assigned to SLOs: the remaining SLOs then get empty indicators
// and thresholds.
func removeBreaches(own pcommon.Map, defined map[string]bool) {
	slos, ok := attributes.Listed(own, names.SLOBreached)
	if !ok {
		for _, name := range breachedNames {
			own.Remove(name)
		}
		return
	}
	var remove []bool
	for _, v := range slos.All() {
		remove = append(remove, defined[v.Str()])
	}
	for _, name := range breachedNames {
		all, ok := attributes.Listed(own, name)
		if !ok || all.Len() != len(remove) {
			all = own.PutEmptySlice(name)
			for range remove {
				all.AppendEmpty()
			}
		}
		i := -1
		all.RemoveIf(func(pcommon.Value) bool { i++; return remove[i] })
		attributes.RemoveEmpty(own, name)
	}
}

// removeAllVerdicts removes every verdict from a span that is neither a model call nor rolled up.
func removeAllVerdicts(attributes pcommon.Map) {
	attributes.RemoveIf(func(name string, _ pcommon.Value) bool {
		return strings.HasPrefix(name, names.SLOPrefix)
	})
}
