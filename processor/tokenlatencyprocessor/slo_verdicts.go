package tokenlatencyprocessor

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// verdict is what definitions.md calls a request for an objective.
type verdict uint8

const (
	met verdict = iota
	breached
	notEligible
	verdicts
)

// verdictNames holds the attribute that lists the objectives by verdict.
var verdictNames = [verdicts]string{met: names.SLOMet, breached: names.SLOBreached, notEligible: names.SLONotEligible}

// breachedNames are the lists that have an entry for each objective breached.
var breachedNames = [...]string{names.SLOBreached, names.SLOBreachedIndicator, names.SLOBreachedThreshold}

// putVerdict adds the verdict of an objective.
func putVerdict(attributes pcommon.Map, v verdict, s *slo, threshold float64) {
	list(attributes, verdictNames[v]).AppendEmpty().SetStr(s.name)
	if v == breached {
		list(attributes, names.SLOBreachedIndicator).AppendEmpty().SetStr(strings.TrimPrefix(s.indicator, names.Prefix))
		list(attributes, names.SLOBreachedThreshold).AppendEmpty().SetDouble(threshold)
	}
}

// list returns an attribute that is a list, and begins it where there is none.
func list(attributes pcommon.Map, name string) pcommon.Slice {
	if begun, ok := listed(attributes, name); ok {
		return begun
	}
	return attributes.PutEmptySlice(name)
}

// listed returns an attribute that is a list, if there is one.
func listed(attributes pcommon.Map, name string) (pcommon.Slice, bool) {
	if v, ok := attributes.Get(name); ok && v.Type() == pcommon.ValueTypeSlice {
		return v.Slice(), true
	}
	return pcommon.Slice{}, false
}

// forgetVerdicts takes back what a processor before this one said of objectives that
// this one defines too. What it said of others stays.
func forgetVerdicts(attributes pcommon.Map, defined map[string]bool) {
	for _, name := range [...]string{names.SLOMet, names.SLONotEligible} {
		if all, ok := listed(attributes, name); ok {
			all.RemoveIf(func(v pcommon.Value) bool { return defined[v.Str()] })
		}
		removeEmpty(attributes, name)
	}
	forgetBreaches(attributes, defined)
}

// forgetBreaches keeps the lists of what was breached as long as each other. Where they
// are not, nobody can tell which entry is whose: then the indicators and thresholds of
// others are empty.
func forgetBreaches(attributes pcommon.Map, defined map[string]bool) {
	slos, ok := listed(attributes, names.SLOBreached)
	if !ok {
		for _, name := range breachedNames {
			attributes.Remove(name)
		}
		return
	}
	var gone []bool
	for _, v := range slos.All() {
		gone = append(gone, defined[v.Str()])
	}
	for _, name := range breachedNames {
		all, ok := listed(attributes, name)
		if !ok || all.Len() != len(gone) {
			all = attributes.PutEmptySlice(name)
			for range gone {
				all.AppendEmpty()
			}
		}
		i := -1
		all.RemoveIf(func(pcommon.Value) bool { i++; return gone[i] })
		removeEmpty(attributes, name)
	}
}

// removeEmpty removes an attribute that is no list, or an empty one.
func removeEmpty(attributes pcommon.Map, name string) {
	if all, ok := listed(attributes, name); !ok || all.Len() == 0 {
		attributes.Remove(name)
	}
}

// forgetAllVerdicts takes verdicts off a span that is no model call: nobody judged it.
func forgetAllVerdicts(attributes pcommon.Map) {
	attributes.RemoveIf(func(name string, _ pcommon.Value) bool {
		return strings.HasPrefix(name, names.SLOPrefix)
	})
}
