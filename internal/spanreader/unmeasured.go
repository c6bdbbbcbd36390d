// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// absence is an entry of names.Unmeasured: indices of an indicator and a reason.
type absence struct{ indicator, reason int }

var absences = func() map[string]absence {
	all := map[string]absence{}
	for i, indicator := range names.UnmeasuredIndicators {
		for j, reason := range names.UnmeasuredReasons {
			all[names.UnmeasuredEntry(indicator, reason)] = absence{i, j}
		}
	}
	return all
}()

// indicators holds the quantity of each indicator.
var indicators = [len(names.UnmeasuredIndicators)]series.Quantity{series.TimeToFirstToken, series.TimePerOutputToken}

// unmeasured reads the list of missing indicators. An entry that is unknown, or the second of its
// indicator, rejects the list.
func (r *reader) unmeasured(v pcommon.Value) {
	if v.Type() != pcommon.ValueTypeSlice {
		r.rejected[WrongType]++
		return
	}
	var reasons [len(indicators)]optional.Value[int]
	for _, entry := range v.Slice().All() {
		a, known := absences[entry.Str()]
		if !known || reasons[a.indicator].Known {
			r.rejected[MalformedUnmeasured]++
			return
		}
		reasons[a.indicator] = optional.Of(a.reason)
	}
	r.absent = reasons
}

// countUnmeasured counts the missing indicators. It rejects a reason for one that the span has.
func (r *reader) countUnmeasured() {
	for i, reason := range r.absent {
		if !reason.Known {
			continue
		}
		if _, measured := r.request.Value(indicators[i]); measured {
			r.rejected[MalformedUnmeasured]++
			continue
		}
		r.request.SetCount(series.Unmeasured(i, reason.Value), 1)
	}
}
