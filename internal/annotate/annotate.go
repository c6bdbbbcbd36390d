// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// derivedNames holds the attributes that the processor replaces or removes, whatever the span carries.
var derivedNames = func() map[string]bool {
	derived := map[string]bool{
		names.Estimated: true, names.StalledAtEnd: true, names.Buffered: true, names.Unmeasured: true, names.Joined: true, names.Repeated: true,
	}
	for id := range numbers.Count {
		if !id.OfTrace() && strings.HasPrefix(id.Attribute(), names.Prefix) { // others report the standard ones
			derived[id.Attribute()] = true
		}
	}
	return derived
}()

// timelineNames holds the attributes with the arrivals of chunks.
var timelineNames = map[string]bool{names.Timeline: true, names.ChunkOffsets: true, names.ChunkTokens: true, names.ChunkChannels: true}

// Annotator writes latencies on spans. It is not safe for concurrent use.
type Annotator struct {
	dropTimeline bool
	events       bool
	sources      []string // by reader
	encoded      []byte   // buffer for one sketch
	// added and verdicts are the largest numbers of attributes that Annotate and the rules added to a
	// span. Slots for all of them are allocated at once.
	added, verdicts int
}

// maxVerdicts limits the slots for verdicts on each span, which only spans with many breaches use.
const maxVerdicts = 16

// NewAnnotator returns an annotator that keeps the timeline if the settings ask for it.
func NewAnnotator(cfg *Config) *Annotator {
	return &Annotator{dropTimeline: cfg.Timeline == TimelineDrop, events: cfg.Events, sources: source.Names()}
}

// Annotate writes a latency. It removes derived attributes that the span already carries, so that a
// missing number stays missing.
//
// pdata searches the whole attribute list at each Put. So Annotate does not rewrite attributes that
// are already right, and grows the list at most once.
func (a *Annotator) Annotate(attributes pcommon.Map, observed *source.Observation, derived *latency.Latency) {
	if !observed.Unannotated {
		attributes.RemoveIf(func(name string, v pcommon.Value) bool {
			if name == names.Cold { // not derived from the span: an earlier processor may know the replica for longer
				return v.Type() != pcommon.ValueTypeBool
			}
			return strings.HasPrefix(name, names.Prefix) && (derivedNames[name] || a.dropTimeline && timelineNames[name])
		})
	}
	before := attributes.Len()
	attributes.EnsureCapacity(before + a.added + a.verdicts)
	a.Write(attributes, observed, derived)
	a.added = max(a.added, attributes.Len()-before)
}

// Expect takes the number of attributes that the rules added to a span.
func (a *Annotator) Expect(verdicts int) { a.verdicts = max(a.verdicts, min(verdicts, maxVerdicts)) }

// Write is Annotate for a new span, which has none of the derived attributes.
func (a *Annotator) Write(attributes pcommon.Map, observed *source.Observation, derived *latency.Latency) {
	putText(attributes, names.Source, a.sources[observed.Reader])
	putText(attributes, names.Vantage, observed.Vantage.String())
	putText(attributes, names.Outcome, derived.Outcome)
	if derived.ErrorType != "" {
		if v, reported := attributes.GetOrPutEmpty(names.ErrorType); !reported {
			v.SetStr(names.Category(derived.ErrorType))
		}
	}
	estimated := false
	for id := range derived.Measures {
		estimated = estimated || derived.Measures[id].Estimated
		switch m, row := &derived.Measures[id], &numbers.Table[id]; {
		case !m.Known:
		case row.Whole:
			attributes.PutInt(row.Attribute, int64(m.Value))
		default:
			attributes.PutDouble(row.Attribute, m.Value)
		}
	}
	if derived.Buffered {
		attributes.PutBool(names.Buffered, true)
	}
	if derived.StalledAtEnd {
		attributes.PutBool(names.StalledAtEnd, true)
	}
	a.putSketch(attributes, numbers.InterTokenLatency, derived.TokenGaps)
	a.putSketch(attributes, numbers.InterChunkLatency, derived.ChunkGaps)
	a.putSketch(attributes, numbers.TokensPerChunk, derived.ChunkTokens)
	a.putSketch(attributes, numbers.InterAudioLatency, derived.AudioGaps)
	if estimated {
		putEstimated(attributes, derived)
	}
	putUnmeasured(attributes, derived)
	putStandard(attributes, observed)
}

// putText writes a text unless the attribute already holds it.
func putText(attributes pcommon.Map, name, text string) {
	v, ok := attributes.GetOrPutEmpty(name)
	if !ok || v.Type() != pcommon.ValueTypeStr || v.Str() != text {
		v.SetStr(text)
	}
}

// putSketch writes a distribution, which token_sli merges across requests.
func (a *Annotator) putSketch(attributes pcommon.Map, id numbers.ID, values *sketch.Sketch) {
	if values != nil {
		a.encoded = values.AppendBinary(a.encoded[:0])
		attributes.PutEmptyBytes(id.Attribute()).FromRaw(a.encoded)
	}
}

// unmeasuredEntries holds the entries of names.Unmeasured.
var unmeasuredEntries = func() (entries [len(numbers.Indicators)][latency.NumAbsences]string) {
	for i, indicator := range names.UnmeasuredIndicators {
		for reason := latency.Present + 1; reason < latency.NumAbsences; reason++ {
			entries[i][reason] = names.UnmeasuredEntry(indicator, reason.String())
		}
	}
	return entries
}()

// putUnmeasured lists the missing indicators with the reasons.
func putUnmeasured(attributes pcommon.Map, derived *latency.Latency) {
	if derived.Absences == [len(numbers.Indicators)]latency.Absence{} {
		return
	}
	list := attributes.PutEmptySlice(names.Unmeasured)
	list.EnsureCapacity(len(numbers.Indicators))
	for i, reason := range derived.Absences {
		if reason != latency.Present {
			list.AppendEmpty().SetStr(unmeasuredEntries[i][reason])
		}
	}
}

// putEstimated lists the written attributes that are estimates or bounds. The statistics of the gaps
// are all estimated, or none.
func putEstimated(attributes pcommon.Map, derived *latency.Latency) {
	var listed [numbers.Count]string
	estimated := listed[:0]
	for id := range numbers.InterTokenMean {
		if derived.Measures[id].Estimated {
			estimated = append(estimated, id.Name())
		}
	}
	for id := numbers.InterTokenMean; id < numbers.Count; id += numbers.ID(latency.NumStatistics) {
		gaps := derived.Gaps(id)
		if slices.ContainsFunc(gaps[:], func(m latency.Measure) bool { return m.Estimated }) {
			estimated = append(estimated, strings.TrimSuffix(id.Name(), ".mean"))
		}
	}
	list := attributes.PutEmptySlice(names.Estimated)
	list.EnsureCapacity(len(estimated))
	for _, name := range estimated {
		list.AppendEmpty().SetStr(name)
	}
}
