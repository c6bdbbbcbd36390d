// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver"
)

// path is the way from the receiver to the series.
type path int

const (
	viaSpans   path = iota
	direct          // the receiver sends series, and no spans
	withSample      // the receiver sends series, and spans of some streams
)

// sampling is what a seed decides about the path.
type sampling struct {
	path        path
	share       float64 // of the spans
	allBreaches bool    // the spans of all breaches are sent
}

// newSampling has random numbers of its own, so that it does not change what else a seed decides.
func newSampling(seed uint64) sampling {
	r := rand.New(rand.NewPCG(seed, 1<<63))
	s := sampling{path: pick(r, viaSpans, viaSpans, direct, withSample, withSample), share: pick(r, 1, 0.5, 0.25, 0), allBreaches: chance(r, 70)}
	s.allBreaches = s.allBreaches || s.share == 0 // otherwise no span is selected
	return s
}

// configureSeries lets the receiver send series.
func (p *process) configureSeries(c *tokenstreamreceiver.Config) {
	if p.world.path == viaSpans {
		return
	}
	latency, series := annotate.DefaultConfig(), publish.NewDefaultConfig()
	latency.SLOs, latency.Timeline = slos(), annotate.TimelineKeep // the timeline is compared
	p.shared(&series.Shared)
	series.Temporality = p.world.temporality
	series.Shared.Metrics[names.StreamsOpen] = keeper.Metric{Enabled: true} // of this receiver only
	c.Latency, c.Series = configoptional.Some(*latency), configoptional.Some(series)
	c.Spans.Share, c.Spans.Breached = p.world.share, p.world.allBreaches
}

// thresholds are those of each share in tracestate, by the specification of OpenTelemetry: without
// trailing zeros.
var thresholds = map[float64]string{1: "0", 0.5: "8", 0.25: "c"}

// inShare is the rule of the specification.
func (s *sampling) inShare(trace [16]byte) bool {
	randomness := binary.BigEndian.Uint64(trace[8:]) & (1<<56 - 1)
	return float64(randomness) >= (1-s.share)*(1<<56)
}

func breaches(c *content, outcome string, cut bool) bool {
	v := verdictsOf(c, outcome, cut)
	return v["ttft"] == "bad" || v["tpot"] == "bad"
}

// mustBeSent reports whether a stream has to become a span. The receiver derives a missing trace
// ID, so it is not known for each stream without a breach.
func (w *world) mustBeSent(c *content, outcome string, cut bool) bool {
	switch {
	case w.path == direct:
		return false
	case w.path == viaSpans || w.share == 1 || w.allBreaches && breaches(c, outcome, cut):
		return true
	default:
		return c.traceID != [16]byte{} && w.inShare(c.traceID)
	}
}

// checkSelected checks that a stream may be sent as a span, and that its span says why.
func (w *world) checkSelected(span ptrace.Span, s *sent) {
	if w.path == viaSpans {
		return
	}
	breach := breaches(s.content, s.outcome, s.cut)
	want := "ot=th:" + thresholds[w.share]
	switch {
	case breach && w.allBreaches:
		want = "ot=th:0"
	case !w.inShare(s.key.trace):
		w.failf("span of stream %s is sent, but is not in the share of %v", s.content.id, w.share)
	}
	if got := span.TraceState().AsRaw(); got != want {
		w.failf("span of stream %s has the tracestate %q, want %q", s.content.id, got, want)
	}
	if _, got := span.Attributes().Get(names.SLOBreached); got != breach {
		w.failf("span of stream %s has a breach: %v, want %v", s.content.id, got, breach)
	}
	if attribute(span.Attributes(), names.Aggregated) != "true" {
		w.failf("span of stream %s does not say that its request is counted already", s.content.id)
	}
}

// keyOf is what the receiver recognises a stream by.
func keyOf(c *content) requestKey {
	if c.traceID == [16]byte{} {
		return requestKey{vantage: c.id}
	}
	return requestKey{c.traceID, c.spanID, c.vantage}
}

// aggregated notes that the receiver added a stream to its series.
func (w *world) aggregated(c *content, outcome string, cut bool) {
	if w.path != viaSpans {
		w.record(w.exporter, keyOf(c), c, outcome, cut)
	}
}

// together returns the expired streams that are in one transaction with those of a batch. The pipeline
// of these worlds does not refuse expired streams temporarily: it would delay some of them, and the
// model could not know which ones the receiver sends next.
func (w *world) together() []*content {
	w.settleUnseen(w.selfMetrics())
	return w.expirable()
}

// expirable returns the streams that the receiver may end now, in the order in which they expire.
func (w *world) expirable() []*content {
	return slices.DeleteFunc(w.byExpiry(), func(c *content) bool {
		return w.stopping.IsZero() && (c.expires(&w.profile).After(time.Now()) || w.claimed(c.id))
	})
}

// leaveBeside notes the result of a batch for the streams that are expired together with it, and adds
// all of them to the series.
func (w *world) leaveBeside(c *call, counter, events string) {
	for _, other := range c.beside {
		cut := w.isCut(other)
		if w.mustBeSent(other, "incomplete", cut) {
			w.failf("stream %s expires without its span", other.id)
		}
		w.end(other, counter, events)
		if c.err == nil {
			w.aggregated(other, "incomplete", cut)
		}
	}
	for _, s := range c.spans {
		if c.err == nil {
			w.aggregated(s.content, "incomplete", s.cut)
		}
	}
}

// isCut reports whether the Collector ends an open stream before it expires.
func (w *world) isCut(c *content) bool {
	return !w.stopping.IsZero() && c.expires(&w.profile).After(w.stopping)
}

// settleUnseen does to the model what the receiver did without a span: it added expired streams to the
// series. Only their number is known: they are those that expired first.
func (w *world) settleUnseen(got map[string]int) {
	if w.path == viaSpans {
		return
	}
	unseen := got["receiver_token_stream_streams_finished incomplete"] - w.counters["streams_finished incomplete"]
	all := w.expirable()
	if unseen > len(all) {
		w.failf("%d streams are incomplete, but only %d have expired", unseen, len(all))
	}
	for _, c := range all[:max(0, min(unseen, len(all)))] {
		cut := w.isCut(c)
		if w.mustBeSent(c, "incomplete", cut) {
			w.failf("stream %s expires without its span", c.id)
		}
		w.end(c, "streams_finished incomplete", "events_finished")
		w.aggregated(c, "incomplete", cut)
	}
}

// checkDelivered checks that each stream of a message was sent that has to be.
func (w *world) checkDelivered(d *prediction, r *reply) {
	for id, c := range d.finished {
		if w.mustBeSent(c, c.outcome, false) && !slices.ContainsFunc(d.calls, func(call *call) bool {
			return slices.ContainsFunc(call.spans, func(s sent) bool { return s.content.id == id })
		}) {
			w.failf("%v: %v was not delivered before the answer %v", d.message, c, r)
		}
	}
}
