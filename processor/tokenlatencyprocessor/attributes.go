package tokenlatencyprocessor

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attribute"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// text returns a string that a span carries, or none.
func text(attributes pcommon.Map, name string) string {
	if v, ok := attributes.Get(name); ok {
		return v.Str()
	}
	return ""
}

// measured returns a number that this processor, or one before it, wrote on a
// span.
func measured(attributes pcommon.Map, name string) latency.Measure {
	v, ok := attributes.Get(name)
	if !ok {
		return latency.Measure{}
	}
	n, ok := attribute.Number(v)
	if !ok || !(n >= 0 && n <= maxNumber) {
		return latency.Measure{}
	}
	return latency.Measure{Value: n, Known: true, Estimated: isEstimated(attributes, name)}
}

// maxNumber is far over any duration in seconds and any number of tokens, and
// far under what adds up to infinity.
const maxNumber = 1 << 53

// putMeasure writes a number, and whether it is an estimate.
func putMeasure(attributes pcommon.Map, name string, m latency.Measure) {
	attributes.PutDouble(name, m.Value)
	if m.Estimated == isEstimated(attributes, name) {
		return
	}
	short := strings.TrimPrefix(name, names.Prefix)
	if m.Estimated {
		estimates(attributes).AppendEmpty().SetStr(short)
		return
	}
	list := estimates(attributes)
	list.RemoveIf(func(v pcommon.Value) bool { return v.Str() == short })
	if list.Len() == 0 {
		attributes.Remove(names.Estimate)
	}
}

func isEstimated(attributes pcommon.Map, name string) bool {
	list, ok := attributes.Get(names.Estimate)
	if !ok || list.Type() != pcommon.ValueTypeSlice {
		return false
	}
	short := strings.TrimPrefix(name, names.Prefix)
	for _, listed := range list.Slice().All() {
		if listed.Str() == short {
			return true
		}
	}
	return false
}

// estimates returns the list of the attributes that are estimates, to change it.
func estimates(attributes pcommon.Map) pcommon.Slice {
	list, ok := attributes.Get(names.Estimate)
	if ok && list.Type() == pcommon.ValueTypeSlice {
		return list.Slice()
	}
	return attributes.PutEmptySlice(names.Estimate)
}
