// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// handover is a request that one engine handed over to another: the first one computed the KV cache of the prompt and one
// token, the second one wrote the answer. Both fields are nodes.
type handover struct{ prefill, decode int }

// joinHandovers makes one request of each handover: the span of the decode takes what it lacks and counts, that of the
// prefill gets names.Repeated and is no call of the tree anymore.
func (t *tree) joinHandovers(counts *tally) {
	t.readTransfers()
	found := t.handovers()
	t.complete(found, counts)
	for _, h := range found {
		t.handOver(h, counts)
	}
	t.repeat(found)
}

// recallHandovers restores what an earlier processor knew of its handovers: which spans have the numbers of both engines, and
// when their requests began.
func (t *tree) recallHandovers() {
	for _, i := range t.calls {
		n := &t.nodes[i]
		joined, ok := n.span.Attributes().Get(names.Joined)
		if !ok || n.vantage != timeline.VantageEngine || joined.Type() != pcommon.ValueTypeSlice {
			continue
		}
		for _, entry := range joined.Slice().All() {
			number, id, _ := strings.Cut(entry.Str(), "=")
			from, known := t.spanWith(n.span.TraceID(), id)
			if !known || !attributes.IsRepeated(t.nodes[from].span) {
				continue
			}
			n.whole = true
			if began := t.nodes[from].span.StartTimestamp(); names.Prefix+number == numbers.RequestDuration.Attribute() && began < n.span.StartTimestamp() {
				n.before = n.span.StartTimestamp() - began
			}
		}
	}
}

// complete adds what spans of engines below the two of a handover report, such as those of vLLM below Dynamo's workers.
func (t *tree) complete(found []handover, counts *tally) {
	if len(found) == 0 {
		return
	}
	inner := map[int]*engineTimes{}
	for _, h := range found {
		inner[h.prefill], inner[h.decode] = new(engineTimes), new(engineTimes)
	}
	for _, i := range t.calls {
		if t.nodes[i].vantage != timeline.VantageEngine {
			continue
		}
		if outermost := t.outermostEngine(i); outermost != i && inner[outermost] != nil {
			inner[outermost].fill(t.nodes[i].span)
		}
	}
	for i, times := range inner {
		fillPhases(t.nodes[i].span.Attributes(), times, counts)
	}
}

// repeat marks the engines' spans of the prefills, also those below another one, and removes them from the calls.
func (t *tree) repeat(found []handover) {
	if len(found) == 0 {
		return
	}
	decodes := map[int]pcommon.SpanID{} // by prefill
	for _, h := range found {
		decodes[h.prefill] = t.nodes[h.decode].span.SpanID()
	}
	var repeated []int
	for _, i := range t.calls {
		if t.nodes[i].vantage != timeline.VantageEngine {
			continue
		}
		if id, ok := decodes[t.outermostEngine(i)]; ok {
			t.nodes[i].span.Attributes().PutStr(names.Repeated, id.String())
			repeated = append(repeated, i)
		}
	}
	for _, i := range repeated { // only now: outermostEngine needs them
		t.nodes[i].call = false
	}
	for _, i := range t.calls { // which may have been a repeated one
		t.nodes[i].leader = noNode
	}
	t.calls = slices.DeleteFunc(t.calls, func(i int) bool { return !t.nodes[i].call })
}

// handOver writes the numbers of the whole request on the span of its decode.
func (t *tree) handOver(h handover, counts *tally) {
	prefill, decode := &t.nodes[h.prefill], &t.nodes[h.decode]
	first, own, from := prefill.span.Attributes(), decode.span.Attributes(), prefill.span.SpanID()
	took := t.transfer(h)
	decode.whole = true
	if decode.span.StartTimestamp() > prefill.span.StartTimestamp() {
		decode.before = decode.span.StartTimestamp() - prefill.span.StartTimestamp()
	}
	if took.rejected != noReason { // the clocks contradict each other
		counts.ignored.Rejected[took.rejected]++
		addClockAnomaly(own, counts)
		decode.before = 0
		for _, id := range firsts {
			removeMeasure(own, id)
		}
		attributes.List(own, names.Unmeasured).AppendEmpty().SetStr(names.UnmeasuredEntry(numbers.TimeToFirstToken.Name(), latency.Implausible.String()))
	}
	for _, id := range [...]numbers.ID{numbers.QueueDuration, numbers.PrefillDuration, numbers.PrefillTokenRate, numbers.CachedInputShare} {
		if m := attributes.Measured(first, id.Attribute()); m.Known {
			attributes.PutMeasure(own, id.Attribute(), m)
			putJoined(own, id.Attribute(), from)
		} else {
			removeMeasure(own, id)
		}
	}
	if v, known := first.Get(names.Cold); known && v.Bool() { // a request waits for both replicas
		own.PutBool(names.Cold, true)
		putJoined(own, names.Cold, from)
	}
	if m := took.measure; m.Known {
		attributes.PutMeasure(own, numbers.TransferDuration.Attribute(), m)
		if took.from != decode.span.SpanID() {
			putJoined(own, numbers.TransferDuration.Attribute(), took.from)
		}
	}
	removeMeasure(own, numbers.FluidityIndex) // its first deadline is one of the whole request
	if decode.before > 0 {
		delay(own, seconds(decode.before), !t.sameClock(h), from)
	}
	t.updateDecodeShare(own)
}

// transferred is the transfer of a handover.
type transferred struct {
	measure  latency.Measure
	from     pcommon.SpanID
	rejected latency.Reason // noReason if the times of both spans can be of one request
}

// noReason is no latency.Reason.
const noReason = latency.NumReasons

// transfer returns the transfer as an engine reports it, or else the time from the end of the prefill to the first token of
// the decode. Without one of these times, it is unknown.
func (t *tree) transfer(h handover) transferred {
	prefill, decode := &t.nodes[h.prefill], &t.nodes[h.decode]
	took := transferred{rejected: noReason}
	firstToken := attributes.Measured(decode.span.Attributes(), numbers.TimeToFirstToken.Attribute())
	if firstToken.Known {
		after := signedSeconds(decode.span.StartTimestamp(), prefill.span.StartTimestamp())
		computed := t.prefilled(h.prefill)
		wait := latency.ToNanosecond(after + firstToken.Value - computed.Value)
		limit, limited := t.callerDuration(h)
		switch {
		case computed.Known && wait < 0:
			took.rejected = latency.Negative
		case limited && after+firstToken.Value > limit:
			took.rejected = latency.LongerThanRequest
		case computed.Known:
			took.measure = latency.Measure{Value: wait, Known: true, Estimated: firstToken.Estimated || computed.Estimated || !t.sameClock(h)}
			took.from = prefill.span.SpanID()
		}
	}
	for _, n := range [...]*node{prefill, decode} { // the decode has the last word: its token waits for the transfer
		if m := attributes.Measured(n.span.Attributes(), numbers.TransferDuration.Attribute()); m.Known {
			took.measure, took.from = m, n.span.SpanID()
		}
	}
	return took
}

// prefilled returns the time from an engine's start to the end of its prefill.
func (t *tree) prefilled(i int) latency.Measure {
	own := t.nodes[i].span.Attributes()
	m := attributes.Measured(own, numbers.PrefillDuration.Attribute())
	if queue := attributes.Measured(own, numbers.QueueDuration.Attribute()); m.Known {
		return latency.Measure{Value: queue.Value + m.Value, Known: true}
	}
	return attributes.Measured(own, numbers.TimeToFirstToken.Attribute())
}

// callerDuration returns the duration of the outermost call above both engines.
func (t *tree) callerDuration(h handover) (duration float64, known bool) {
	caller := t.leader(h.decode)
	if caller == h.decode || caller != t.leader(h.prefill) {
		return 0, false
	}
	m := attributes.Measured(t.nodes[caller].span.Attributes(), numbers.RequestDuration.Attribute())
	return m.Value, m.Known
}

// firsts are the times from the start of a request.
var firsts = [...]numbers.ID{numbers.TimeToFirstToken, numbers.TimeToFirstOutputToken, numbers.TimeToFirstAudio}

// delay adds the time that a request took before its span began.
func delay(own pcommon.Map, before float64, estimated bool, from pcommon.SpanID) {
	whole := attributes.Measured(own, numbers.RequestDuration.Attribute())
	for _, id := range append(firsts[:], numbers.RequestDuration) {
		if m := attributes.Measured(own, id.Attribute()); m.Known {
			m.Value, m.Estimated = latency.ToNanosecond(m.Value+before), m.Estimated || estimated
			attributes.PutMeasure(own, id.Attribute(), m)
			putJoined(own, id.Attribute(), from)
		}
	}
	if rate := attributes.Measured(own, numbers.RequestTokenRate.Attribute()); rate.Known && whole.Known {
		rate.Value, rate.Estimated = rate.Value*whole.Value/(whole.Value+before), rate.Estimated || estimated
		attributes.PutMeasure(own, numbers.RequestTokenRate.Attribute(), rate)
	}
}

// sameClock reports whether both engines run on one host.
func (t *tree) sameClock(h handover) bool {
	for _, name := range [...]string{"host.id", "host.name"} {
		a, b := t.ofResource(h.prefill, name), t.ofResource(h.decode, name)
		if a != "" && b != "" {
			return a == b
		}
	}
	return false
}

func (t *tree) ofResource(i int, name string) string {
	return attributes.Text(t.resources[t.nodes[i].resource].Resource().Attributes(), name)
}

func removeMeasure(own pcommon.Map, id numbers.ID) {
	if _, exists := own.Get(id.Attribute()); exists {
		attributes.PutMeasure(own, id.Attribute(), latency.Measure{}) // which is no estimate
		own.Remove(id.Attribute())
	}
}

func addClockAnomaly(own pcommon.Map, counts *tally) {
	n, _ := attributes.Plausible(own, numbers.ClockAnomalies.Attribute())
	own.PutInt(numbers.ClockAnomalies.Attribute(), int64(n)+1)
	counts.ignored.ClockAnomalies++
}

func signedSeconds(a, b pcommon.Timestamp) float64 {
	if a < b {
		return -seconds(b - a)
	}
	return seconds(a - b)
}

// transferSpans are the names of spans below an engine's whose length is its transfer, by the source of the engine. vLLM's is
// that of a proposal (vllm-project/vllm#44402).
var transferSpans = map[string]string{"vllm_async_kv_transfer": names.SourceVLLM, "prefill_transfer_kv_cache": names.SourceSGLang}

// readTransfers writes the transfer that a span below an engine's measures. Of several, such as one of each rank, it is the
// longest.
func (t *tree) readTransfers() {
	for i := range t.nodes {
		n := &t.nodes[i]
		reader, ok := transferSpans[n.span.Name()]
		if !ok || n.call || n.span.EndTimestamp() < n.span.StartTimestamp() {
			continue
		}
		engine, _ := t.nearest(n.parent, nil)
		if engine == noNode || !t.nodes[engine].call {
			continue
		}
		own := t.nodes[engine].span.Attributes()
		length := seconds(n.span.EndTimestamp() - n.span.StartTimestamp())
		known := attributes.Measured(own, numbers.TransferDuration.Attribute())
		limit := attributes.Measured(own, numbers.RequestDuration.Attribute())
		if attributes.Text(own, names.Source) == reader && length <= limit.Value && length > known.Value {
			attributes.PutMeasure(own, numbers.TransferDuration.Attribute(), latency.Measure{Value: length, Known: true})
			putJoined(own, numbers.TransferDuration.Attribute(), n.span.SpanID())
		}
	}
}
