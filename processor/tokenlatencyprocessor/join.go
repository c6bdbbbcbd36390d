package tokenlatencyprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// onlyEngineKnows are the phases that a client can at best estimate.
var onlyEngineKnows = [...]string{names.QueueDuration, names.PrefillDuration, names.DecodeDuration}

// engineTimes is what an engine measured of one request.
type engineTimes struct {
	firstToken latency.Measure
	phases     [len(onlyEngineKnows)]latency.Measure
}

// fill takes what is not known yet.
func (e *engineTimes) fill(attributes pcommon.Map) {
	if !e.firstToken.Known {
		e.firstToken = measured(attributes, names.TimeToFirstToken)
	}
	for i, name := range onlyEngineKnows {
		if !e.phases[i].Known {
			e.phases[i] = measured(attributes, name)
		}
	}
}

// severalEngines stands for the engine of a request that has more than one, of
// which none can be told to be the right one: a retry, for example.
const severalEngines = -2

// join gives the spans of clients, and of the gateways on the way to them, what
// the engine's span of the same request tells. The two belong together when one
// is above the other.
func (t *tree) join(counts *tally) {
	engines := map[int]*engineTimes{}
	for _, i := range t.calls {
		if t.nodes[i].vantage == engine && t.outermostEngine(i) == i {
			engines[i] = new(engineTimes)
			engines[i].fill(t.nodes[i].span.Attributes())
		}
	}
	// An engine inside an engine works on the same request.
	for _, i := range t.calls {
		if t.nodes[i].vantage == engine {
			if outermost := engines[t.outermostEngine(i)]; outermost != nil {
				outermost.fill(t.nodes[i].span.Attributes())
			}
		}
	}

	engineOf := map[int]int{}
	for e := range engines {
		t.above(e, func(i int) bool {
			if !t.nodes[i].call {
				return !t.nodes[i].agent // what a tool asks an engine for is not its agent's request
			}
			if _, taken := engineOf[i]; taken {
				engineOf[i] = severalEngines
			} else {
				engineOf[i] = e
			}
			return t.nodes[i].vantage != client
		})
	}
	for i, e := range engineOf {
		if e == severalEngines {
			counts.joins[ambiguous]++
			continue
		}
		counts.joins[joined]++
		gain(t.nodes[i].span.Attributes(), engines[e], counts)
	}
}

// outermostEngine returns the highest of the engines that follow one another
// upwards from a node.
func (t *tree) outermostEngine(i int) int {
	outermost := i
	t.above(i, func(above int) bool {
		if n := &t.nodes[above]; n.call && n.vantage != engine {
			return false
		} else if n.call {
			outermost = above
		}
		return !t.nodes[above].agent
	})
	return outermost
}

// gain writes on a client's span what it lacks or has only as an estimate.
func gain(attributes pcommon.Map, told *engineTimes, counts *tally) {
	limit := measured(attributes, names.RequestDuration)
	for i, name := range onlyEngineKnows {
		own, theirs := measured(attributes, name), told.phases[i]
		switch {
		case !theirs.Known || own.Known && !own.Estimated:
		case limit.Known && theirs.Value > limit.Value:
			counts.rejected[latency.LongerThanRequest]++
		default:
			putMeasure(attributes, name, theirs)
		}
	}
	prefill, decode := measured(attributes, names.PrefillDuration), measured(attributes, names.DecodeDuration)
	if sum := prefill.Value + decode.Value; prefill.Known && decode.Known && sum > 0 {
		putMeasure(attributes, names.DecodeShare, latency.Measure{
			Value: decode.Value / sum, Known: true, Estimated: prefill.Estimated || decode.Estimated,
		})
	}
	putNetwork(attributes, measured(attributes, names.TimeToFirstToken), told.firstToken, counts)
}

// putNetwork writes how much longer the first token took to the client than to
// the engine. A difference of two durations mixes no clocks.
func putNetwork(attributes pcommon.Map, clients, engines latency.Measure, counts *tally) {
	switch {
	case !clients.Known || !engines.Known:
	case clients.Value < engines.Value:
		counts.rejected[latency.Negative]++
	default:
		putMeasure(attributes, names.NetworkDuration, latency.Measure{
			Value: clients.Value - engines.Value, Known: true, Estimated: clients.Estimated || engines.Estimated,
		})
	}
}
