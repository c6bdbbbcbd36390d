// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// enginePhases are the phases that only an engine measures. A client can at best estimate them.
var enginePhases = [...]string{
	numbers.QueueDuration.Attribute(), numbers.PrefillDuration.Attribute(), numbers.TransferDuration.Attribute(), numbers.DecodeDuration.Attribute(),
}

// engineTimes is what an engine measured of one request.
type engineTimes struct {
	spans      []int // of the engine
	firstToken engineTime
	phases     [len(enginePhases)]engineTime
}

// engineTime is a number, and the span that has it.
type engineTime struct {
	latency.Measure
	span pcommon.SpanID
}

// fill adds the times that are still unknown from an engine's span.
func (e *engineTimes) fill(span ptrace.Span) {
	fill := func(t *engineTime, name string) {
		if !t.Known {
			*t = engineTime{attributes.Measured(span.Attributes(), name), span.SpanID()}
		}
	}
	fill(&e.firstToken, numbers.TimeToFirstToken.Attribute())
	for i, name := range enginePhases {
		fill(&e.phases[i], name)
	}
}

// severalEngines stands for the engine of a request that more than one engine worked on, such as
// after a retry. It is unknown which of them answered.
const severalEngines = -2

// join adds an engine's times to the client's span of the same request, and to the gateways and
// servers in between. It adds the client's model to the engine's spans, also to those of a retry. An
// engine's span belongs to the model calls above it.
func (t *tree) join(counts *tally) {
	t.joinHandovers(counts)
	engines := t.engines()
	engineOf := map[int]int{}
	for e, engine := range engines {
		topmost, named, model := noNode, noNode, ""
		t.ancestors(e, func(i int) bool {
			if !t.nodes[i].call {
				return !t.nodes[i].agent // an agent's or tool's request is not the client's above it
			}
			if own, _ := t.model(i); own != "" {
				named, model = i, own
			}
			topmost = i
			if _, taken := engineOf[i]; taken {
				engineOf[i] = severalEngines
			} else {
				engineOf[i] = e
			}
			return t.nodes[i].vantage != timeline.VantageClient
		})
		if topmost != noNode {
			t.nodes[topmost].topmost = true
		}
		if named != noNode {
			t.putModel(engine.spans, model, t.nodes[named].span.SpanID())
		}
	}
	for i, e := range engineOf {
		if e == severalEngines {
			counts.ambiguous++
			t.nodes[i].topmost = false
			continue
		}
		counts.joined++
		fillFromEngine(t.nodes[i].span.Attributes(), engines[e], counts)
		t.updateDecodeShare(t.nodes[i].span.Attributes())
	}
}

// engines returns the times of each outermost engine span. An engine's span below another engine's
// belongs to the same request and adds what that one lacks, unless that one already has the phases of two engines.
func (t *tree) engines() map[int]*engineTimes {
	engines := map[int]*engineTimes{}
	for _, i := range t.calls {
		if t.nodes[i].vantage == timeline.VantageEngine && t.outermostEngine(i) == i {
			engines[i] = new(engineTimes)
			engines[i].fill(t.nodes[i].span)
		}
	}
	for _, i := range t.calls {
		if t.nodes[i].vantage == timeline.VantageEngine {
			o := t.outermostEngine(i)
			if outermost := engines[o]; outermost != nil {
				outermost.spans = append(outermost.spans, i)
				if !t.nodes[o].whole {
					outermost.fill(t.nodes[i].span)
				}
			}
		}
	}
	return engines
}

// model returns the requested model of a call, from its span or its resource. known is also true for a
// value that is not text.
func (t *tree) model(i int) (model string, known bool) {
	n := &t.nodes[i]
	v, known := attributes.LookUp(names.GenAIRequestModel, n.span.Attributes(), t.resources[n.resource].Resource().Attributes())
	if known {
		model = v.Str()
	}
	return model, known
}

// putModel writes the model of another span on the spans that have none, neither themselves nor on their
// resource.
func (t *tree) putModel(spans []int, model string, from pcommon.SpanID) {
	for _, i := range spans {
		if _, known := t.model(i); !known {
			attributes := t.nodes[i].span.Attributes()
			attributes.PutStr(names.GenAIRequestModel, model)
			putJoined(attributes, names.GenAIRequestModel, from)
		}
	}
}

// putJoined notes the span that an attribute comes from, in place of an earlier note on this attribute.
func putJoined(own pcommon.Map, name string, from pcommon.SpanID) {
	key := strings.TrimPrefix(name, names.Prefix) + "="
	joined := attributes.List(own, names.Joined)
	joined.RemoveIf(func(v pcommon.Value) bool { return strings.HasPrefix(v.Str(), key) })
	joined.AppendEmpty().SetStr(key + from.String())
}

// outermostEngine returns the topmost of the engines above an engine, with no other model call and
// no agent in between.
func (t *tree) outermostEngine(i int) int {
	outermost := i
	t.ancestors(i, func(above int) bool {
		if n := &t.nodes[above]; n.call && n.vantage != timeline.VantageEngine {
			return false
		} else if n.call {
			outermost = above
		}
		return !t.nodes[above].agent
	})
	return outermost
}

// fillFromEngine writes the engine's phases on a span that lacks them or has estimates, and the
// difference of their times to first token.
func fillFromEngine(own pcommon.Map, engine *engineTimes, counts *tally) {
	fillPhases(own, engine, counts)
	putNetwork(own, attributes.Measured(own, numbers.TimeToFirstToken.Attribute()), engine.firstToken, counts)
}

func fillPhases(own pcommon.Map, engine *engineTimes, counts *tally) {
	limit := attributes.Measured(own, numbers.RequestDuration.Attribute())
	for i, name := range enginePhases {
		reported, phase := attributes.Measured(own, name), engine.phases[i]
		switch {
		case !phase.Known || reported.Known && !reported.Estimated && reported != phase.Measure: // equal if joined before
		case limit.Known && phase.Value > limit.Value:
			counts.ignored.Rejected[latency.LongerThanRequest]++
		default:
			attributes.PutMeasure(own, name, phase.Measure)
			putJoined(own, name, phase.span)
		}
	}
}

// updateDecodeShare writes the decode share of the joined phases. With `detail: standard` it only
// replaces one that the span already has.
func (t *tree) updateDecodeShare(own pcommon.Map) {
	if _, written := own.Get(numbers.DecodeShare.Attribute()); !written && !t.writesDecodeShare {
		return
	}
	prefill, decode := attributes.Measured(own, numbers.PrefillDuration.Attribute()), attributes.Measured(own, numbers.DecodeDuration.Attribute())
	if sum := prefill.Value + decode.Value; prefill.Known && decode.Known && sum > 0 {
		attributes.PutMeasure(own, numbers.DecodeShare.Attribute(), latency.Measure{
			Value: decode.Value / sum, Known: true, Estimated: prefill.Estimated || decode.Estimated,
		})
	}
}

// putNetwork writes how much longer the first token took at the client than at the engine. The
// difference of two durations does not depend on the offset between the clocks.
func putNetwork(own pcommon.Map, client latency.Measure, engine engineTime, counts *tally) {
	switch {
	case !client.Known || !engine.Known:
	case client.Value < engine.Value:
		counts.ignored.Rejected[latency.Negative]++
	default:
		attributes.PutMeasure(own, numbers.NetworkDuration.Attribute(), latency.Measure{
			Value: latency.ToNanosecond(client.Value - engine.Value), Known: true, Estimated: client.Estimated || engine.Estimated,
		})
		putJoined(own, numbers.NetworkDuration.Attribute(), engine.span)
	}
}
