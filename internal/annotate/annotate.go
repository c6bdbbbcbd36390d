// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// measureNames maps each quantity to its attribute.
var measureNames = [latency.NumQuantities]string{
	latency.RequestDuration:        names.RequestDuration,
	latency.TimeToFirstToken:       names.TimeToFirstToken,
	latency.TimeToFirstOutputToken: names.TimeToFirstOutputToken,
	latency.TimePerOutputToken:     names.TimePerOutputToken,
	latency.QueueDuration:          names.QueueDuration,
	latency.PrefillDuration:        names.PrefillDuration,
	latency.DecodeDuration:         names.DecodeDuration,
	latency.DecodeShare:            names.DecodeShare,
	latency.OutputTokenRate:        names.OutputTokenRate,
	latency.RequestTokenRate:       names.RequestTokenRate,
	latency.StallDuration:          names.StallDuration,
	latency.FluidityIndex:          names.FluidityIndex,
}

// distribution holds the attributes of one distribution.
type distribution struct {
	name       string
	statistics [latency.NumStatistics]string
	sketch     string
}

var (
	interToken = newDistribution(names.InterTokenLatency, names.InterTokenLatencySketch)
	interChunk = newDistribution(names.InterChunkLatency, names.InterChunkLatencySketch)
)

func newDistribution(name, sketch string) distribution {
	return distribution{name: name, sketch: sketch, statistics: [latency.NumStatistics]string{
		latency.Mean: name + names.SuffixMean,
		latency.P50:  name + names.SuffixP50,
		latency.P95:  name + names.SuffixP95,
		latency.P99:  name + names.SuffixP99,
		latency.Max:  name + names.SuffixMax,
	}}
}

// derivedNames holds the attributes that the processor replaces or removes, whatever the span carries.
var derivedNames = func() map[string]bool {
	derived := map[string]bool{
		names.StallCount: true, names.ChunkCount: true, names.TokenCount: true, names.TokenCountMismatch: true,
		names.ClockAnomalies: true, names.Estimated: true, names.StalledAtEnd: true, names.Buffered: true, names.Unmeasured: true,
		names.NetworkDuration: true,
	}
	for _, name := range measureNames {
		derived[name] = true
	}
	for _, d := range []distribution{interToken, interChunk} {
		derived[d.sketch] = true
		for _, name := range d.statistics {
			derived[name] = true
		}
	}
	return derived
}()

// Annotator writes latencies on spans. It is not safe for concurrent use.
type Annotator struct {
	dropTimeline bool
	sources      []string // by reader
	// The attributes that are written. Those left out are empty.
	measures               [latency.NumQuantities]string
	interToken, interChunk distribution
	encoded                []byte // buffer for one sketch
	// added is the largest number of attributes that Annotate added to a span, and verdicts how
	// many the rules usually add. Slots for all of them are allocated at once.
	added, verdicts int
}

// NewAnnotator returns an annotator that writes the attributes which the settings ask for.
func NewAnnotator(cfg *Config) *Annotator {
	a := &Annotator{
		dropTimeline: cfg.Timeline == TimelineDrop, sources: source.Names(),
		measures: measureNames, interToken: interToken, interChunk: interChunk,
		verdicts: min(len(cfg.SLOs), len(verdictNames)),
	}
	leaveOut := func(name *string) {
		if !cfg.Writes(*name) {
			*name = ""
		}
	}
	for quantity := range a.measures {
		leaveOut(&a.measures[quantity])
	}
	for _, d := range []*distribution{&a.interToken, &a.interChunk} {
		leaveOut(&d.sketch)
		for statistic := range d.statistics {
			leaveOut(&d.statistics[statistic])
		}
	}
	return a
}

// writes reports whether a measure is written: it is known and not left out.
func (a *Annotator) writes(quantity latency.Quantity, derived *latency.Latency) bool {
	return a.measures[quantity] != "" && measure(derived, quantity).Known
}

// writes reports whether one of the statistics is written.
func (d *distribution) writes(known *latency.Distribution) bool {
	for statistic, m := range known {
		if m.Known && d.statistics[statistic] != "" {
			return true
		}
	}
	return false
}

// Annotate writes the latency that the analyzer derived last. It removes derived attributes that the
// span already carries, so that a missing number stays missing.
//
// pdata searches the whole attribute list at each Put. So Annotate does not rewrite attributes that
// are already right, and grows the list at most once.
func (a *Annotator) Annotate(
	attributes pcommon.Map, observed *source.Observation, derived *latency.Latency, analyzer *latency.Analyzer,
) {
	attributes.RemoveIf(func(name string, _ pcommon.Value) bool {
		return strings.HasPrefix(name, names.Prefix) && (derivedNames[name] || a.dropTimeline && name == names.Timeline)
	})
	before := attributes.Len()
	attributes.EnsureCapacity(before + a.added + a.verdicts)
	a.Write(attributes, observed, derived, analyzer)
	a.added = max(a.added, attributes.Len()-before)
}

// Write is Annotate for a new span, which has none of the derived attributes.
func (a *Annotator) Write(
	attributes pcommon.Map, observed *source.Observation, derived *latency.Latency, analyzer *latency.Analyzer,
) {
	putText(attributes, names.Source, a.sources[observed.Reader])
	putText(attributes, names.Vantage, observed.Vantage.String())
	putText(attributes, names.Outcome, derived.Outcome)
	for quantity, name := range a.measures {
		if m := measure(derived, latency.Quantity(quantity)); m.Known && name != "" {
			attributes.PutDouble(name, m.Value)
		}
	}
	if observed.Network.Known {
		attributes.PutDouble(names.NetworkDuration, observed.Network.Value.Seconds())
	}
	if derived.Buffered {
		attributes.PutBool(names.Buffered, true)
	}
	putCounts(attributes, derived)
	putDistribution(attributes, &a.interToken, &derived.InterToken)
	putDistribution(attributes, &a.interChunk, &derived.InterChunk)
	a.putSketches(attributes, analyzer)
	a.putEstimated(attributes, derived)
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

func putCounts(attributes pcommon.Map, derived *latency.Latency) {
	if measure(derived, latency.StallDuration).Known {
		attributes.PutInt(names.StallCount, derived.StallCount)
	}
	if derived.StalledAtEnd {
		attributes.PutBool(names.StalledAtEnd, true)
	}
	if derived.ChunkCount.Known {
		attributes.PutInt(names.ChunkCount, derived.ChunkCount.Value)
	}
	if derived.TokenCount.Known {
		attributes.PutInt(names.TokenCount, derived.TokenCount.Value)
	}
	if derived.TokenCountMismatch != 0 {
		attributes.PutInt(names.TokenCountMismatch, derived.TokenCountMismatch)
	}
	if derived.ClockAnomalies > 0 {
		attributes.PutInt(names.ClockAnomalies, derived.ClockAnomalies)
	}
}

func putDistribution(attributes pcommon.Map, name *distribution, d *latency.Distribution) {
	for i, name := range name.statistics {
		if m := statistic(d, latency.Statistic(i)); m.Known && name != "" {
			attributes.PutDouble(name, m.Value)
		}
	}
}

// putSketches writes the distributions, which token_sli merges across requests. It omits the
// inter-chunk sketch if it equals the inter-token sketch.
func (a *Annotator) putSketches(attributes pcommon.Map, analyzer *latency.Analyzer) {
	tokens, chunks := analyzer.InterTokenSketch(), analyzer.InterChunkSketch()
	if tokens.Count() == 0 {
		return
	}
	if a.interToken.sketch != "" {
		a.putSketch(attributes, a.interToken.sketch, tokens)
	}
	if a.interChunk.sketch != "" && chunks != tokens {
		a.putSketch(attributes, a.interChunk.sketch, chunks)
	}
}

func (a *Annotator) putSketch(attributes pcommon.Map, name string, s *sketch.Sketch) {
	a.encoded = s.AppendBinary(a.encoded[:0])
	attributes.PutEmptyBytes(name).FromRaw(a.encoded)
}

// unmeasuredEntries holds the entries of names.Unmeasured.
var unmeasuredEntries = func() (entries [len(latency.Indicators)][latency.NumAbsences]string) {
	for i, indicator := range names.UnmeasuredIndicators {
		for reason := latency.Present + 1; reason < latency.NumAbsences; reason++ {
			entries[i][reason] = names.UnmeasuredEntry(indicator, reason.String())
		}
	}
	return entries
}()

// putUnmeasured lists the missing indicators with the reasons.
func putUnmeasured(attributes pcommon.Map, derived *latency.Latency) {
	if derived.Absences == [len(latency.Indicators)]latency.Absence{} {
		return
	}
	list := attributes.PutEmptySlice(names.Unmeasured)
	list.EnsureCapacity(len(latency.Indicators))
	for i, reason := range derived.Absences {
		if reason != latency.Present {
			list.AppendEmpty().SetStr(unmeasuredEntries[i][reason])
		}
	}
}

// putEstimated lists the written attributes that are estimates or bounds.
func (a *Annotator) putEstimated(attributes pcommon.Map, derived *latency.Latency) {
	var listed [int(latency.NumQuantities) + 3]string
	estimated := listed[:0]
	for quantity, m := range derived.Measures {
		if m.Estimated && a.writes(latency.Quantity(quantity), derived) {
			estimated = append(estimated, a.measures[quantity])
		}
	}
	if derived.Measures[latency.StallDuration].Estimated && a.writes(latency.StallDuration, derived) {
		estimated = append(estimated, names.StallCount)
	}
	if derived.InterToken[latency.Mean].Estimated && a.interToken.writes(&derived.InterToken) {
		estimated = append(estimated, a.interToken.name)
	}
	if derived.InterChunk[latency.Mean].Estimated && a.interChunk.writes(&derived.InterChunk) {
		estimated = append(estimated, a.interChunk.name)
	}
	if len(estimated) == 0 {
		return
	}
	list := attributes.PutEmptySlice(names.Estimated)
	list.EnsureCapacity(len(estimated))
	for _, name := range estimated {
		list.AppendEmpty().SetStr(strings.TrimPrefix(name, names.Prefix))
	}
}
