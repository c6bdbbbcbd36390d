// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package attributes

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// MaxNumber is larger than any real duration in seconds and any real number of tokens, and small
// enough that sums stay finite.
const MaxNumber = 1 << 53

// Measured returns a number that a token_latency processor wrote. It is unknown unless it is between
// 0 and MaxNumber.
func Measured(attributes pcommon.Map, name string) latency.Measure {
	n, ok := Plausible(attributes, name)
	if !ok {
		return latency.Measure{}
	}
	return latency.Measure{Value: n, Known: true, Estimated: isEstimated(attributes, name)}
}

// Plausible returns the number of Measured without whether it is an estimate.
func Plausible(attributes pcommon.Map, name string) (n float64, known bool) {
	v, ok := attributes.Get(name)
	if !ok {
		return 0, false
	}
	if n, ok = Number(v); !ok || !(n >= 0 && n <= MaxNumber) {
		return 0, false
	}
	return n, true
}

// PutMeasure writes a number, and adds it to the list of estimates or removes it.
func PutMeasure(attributes pcommon.Map, name string, m latency.Measure) {
	attributes.PutDouble(name, m.Value)
	if m.Estimated == isEstimated(attributes, name) {
		return
	}
	short, estimates := strings.TrimPrefix(name, names.Prefix), List(attributes, names.Estimated)
	if m.Estimated {
		estimates.AppendEmpty().SetStr(short)
		return
	}
	estimates.RemoveIf(func(v pcommon.Value) bool { return v.Str() == short })
	RemoveEmpty(attributes, names.Estimated)
}

func isEstimated(attributes pcommon.Map, name string) bool {
	estimates, ok := Listed(attributes, names.Estimated)
	if !ok {
		return false
	}
	short := strings.TrimPrefix(name, names.Prefix)
	for _, v := range estimates.All() {
		if v.Str() == short {
			return true
		}
	}
	return false
}
