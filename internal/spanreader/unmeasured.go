// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// absence is an entry of names.Unmeasured.
type absence struct {
	indicator int
	reason    latency.Absence
}

var absences = func() map[string]absence {
	all := map[string]absence{}
	for i, indicator := range names.UnmeasuredIndicators {
		for j, reason := range names.UnmeasuredReasons {
			all[names.UnmeasuredEntry(indicator, reason)] = absence{i, latency.Absence(j + 1)}
		}
	}
	return all
}()

// unmeasured reads the list of missing indicators. An entry that is unknown, or the second of its
// indicator, rejects the list.
func (r *reader) unmeasured(v pcommon.Value) {
	if v.Type() != pcommon.ValueTypeSlice {
		r.request.Reject(series.WrongType)
		return
	}
	var reasons [len(numbers.Indicators)]latency.Absence
	for _, entry := range v.Slice().All() {
		a, known := absences[entry.Str()]
		if !known || reasons[a.indicator] != latency.Present {
			r.request.Reject(series.MalformedUnmeasured)
			return
		}
		reasons[a.indicator] = a.reason
	}
	r.request.Latency.Absences, r.processed = reasons, true
}
