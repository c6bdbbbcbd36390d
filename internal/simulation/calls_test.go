// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// call is one batch of spans that the receiver sent to the pipeline.
type call struct {
	spans   []sent
	weather weather
	release chan weather // the verdict on a batch that is held
	held    bool
	err     error
	expired bool // the streams have no end
	// beside are the other streams of the transaction, which become no spans.
	beside []*content
}

// sent is one span of a batch.
type sent struct {
	key     requestKey
	content *content
	outcome string
	cut     bool
}

func isPermanent(err error) bool { return consumererror.IsPermanent(err) }

// arrive checks a batch at the gate against the streams that it should be made of.
func (w *world) arrive(traces ptrace.Traces) *call {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &call{weather: w.weather, release: make(chan weather, 1)}
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				if s, ok := w.identify(span, resource.Resource()); ok {
					c.spans = append(c.spans, s)
					c.expired = c.expired || s.content != nil && !s.content.ended
				}
			}
		}
	}
	if c.expired && w.path == withSample {
		if c.weather != rejecting { // see together
			c.weather = fair
		}
		c.beside = slices.DeleteFunc(w.together(), func(other *content) bool {
			return slices.ContainsFunc(c.spans, func(s sent) bool { return s.content == other })
		})
	}
	if c.weather == holding {
		c.held = true
		w.calls = append(w.calls, c)
		if !c.expired {
			w.logf("the pipeline holds a batch of %d spans", len(c.spans))
		}
	}
	if !c.expired {
		for _, f := range w.flights {
			if w.finishes(f.predicted, c) {
				f.predicted.calls = append(f.predicted.calls, c)
				return c
			}
		}
		w.failf("a batch ends streams that no message in progress ends: %v", c)
	}
	return c
}

// finishes reports whether a batch holds the streams that a message ends, as far as they become spans.
func (w *world) finishes(d *prediction, c *call) bool {
	if w.path == viaSpans && len(d.finished) != len(c.spans) || len(d.calls) > 0 {
		return false
	}
	for _, s := range c.spans {
		if d.finished[s.content.id] == nil {
			return false
		}
	}
	return true
}

// identify finds the stream of a span, and compares what the span holds.
func (w *world) identify(span ptrace.Span, resource pcommon.Resource) (s sent, ok bool) {
	id := attribute(span.Attributes(), idAttribute)
	s = sent{
		key:     requestKey{span.TraceID(), span.SpanID(), attribute(span.Attributes(), names.Vantage)},
		outcome: attribute(span.Attributes(), names.Outcome),
		cut:     attribute(span.Attributes(), names.Cut) == names.CutCollector,
	}
	if s.outcome == "incomplete" {
		s.content = w.open[id]
		w.checkIncomplete(id, &s)
	} else {
		for _, f := range w.flights {
			if c := f.predicted.finished[id]; c != nil {
				s.content = c
			}
		}
	}
	c := s.content
	if c == nil {
		w.failf("span of stream %q with outcome %s: no such stream should end now", id, s.outcome)
		return s, false
	}
	if s.outcome != "incomplete" && s.outcome != c.outcome {
		w.failf("span of stream %s has outcome %s, want %s", id, s.outcome, c.outcome)
	}
	if got := attribute(resource.Attributes(), names.ServiceName); got != c.service {
		w.failf("span of stream %s has service %s, want %s", id, got, c.service)
	}
	w.checkIDs(&s)
	w.checkChunks(span, c)
	w.checkSelected(span, &s)
	return s, true
}

// checkIDs checks that a stream results in the same IDs each time it is sent.
func (w *world) checkIDs(s *sent) {
	c := s.content
	if c.traceID != [16]byte{} && (s.key.trace != c.traceID || s.key.span != c.spanID) {
		w.failf("span of stream %s has other IDs than its start event", c.id)
	}
	if before, ok := w.keys[c.id]; ok && before != s.key {
		w.failf("stream %s is sent with the IDs %x %x %s, before with %x %x %s", c.id, s.key.trace, s.key.span, s.key.vantage, before.trace, before.span, before.vantage)
	}
	w.keys[c.id] = s.key
}

func (w *world) checkChunks(span ptrace.Span, c *content) {
	packed, _ := span.Attributes().Get(names.Timeline)
	walk, err := timeline.Decode(packed.Bytes().AsRaw())
	if err != nil {
		w.failf("timeline of stream %s: %v", c.id, err)
		return
	}
	var got []chunk
	for walk.Next() {
		got = append(got, chunk{c.start + int64(walk.Offset()), int(walk.Tokens())})
	}
	want := c.arrivals()
	if !slices.Equal(got, want) {
		w.failf("span of stream %s has the chunks %v, want %v", c.id, got, want)
	}
	if int64(span.StartTimestamp()) != c.start || c.ended && int64(span.EndTimestamp()) != c.end {
		w.failf("span of stream %s has the times %d to %d, want %d to %d", c.id, span.StartTimestamp(), span.EndTimestamp(), c.start, c.end)
	}
}

// checkIncomplete checks that a stream without an end may be sent.
func (w *world) checkIncomplete(id string, s *sent) {
	if s.content == nil {
		return
	}
	expires := s.content.expires(&w.profile)
	expired := !expires.After(time.Now())
	switch {
	case s.cut && w.durable:
		w.failf("stream %s is marked as cut, although it is stored", id)
	case s.cut && w.stopping.IsZero():
		w.failf("stream %s is marked as cut, but the process goes on", id)
	case w.stopping.IsZero() && !expired:
		w.failf("stream %s is sent as incomplete %v before it expires", id, time.Until(expires))
	case !w.stopping.IsZero() && (s.cut && expires.Before(w.stopping) || !s.cut && !expired):
		w.failf("stream %s is marked as cut: %v; it expires %v after the shutdown began", id, s.cut, expires.Sub(w.stopping))
	}
}

func attribute(attributes pcommon.Map, key string) string {
	v, ok := attributes.Get(key)
	if !ok {
		return ""
	}
	return v.AsString()
}

// leave notes the result of a batch.
func (w *world) leave(c *call, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.err = err
	if c.held {
		c.held, w.releasedAt = false, time.Now()
	}
	w.calls = slices.DeleteFunc(w.calls, func(other *call) bool { return other == c })
	switch {
	case err == nil:
		w.startsRefused = false
	case !isPermanent(err):
		w.refusedAt = time.Now()
		// A request whose client has gone does not count as a refusal.
		w.startsRefused = !c.expired && err != context.Canceled //nolint:errorlint // as the gate returns it
	}
	if !c.expired {
		return
	}
	counter, events := "streams_finished incomplete", "events_finished"
	if isPermanent(err) {
		counter, events = "streams_lost permanent_error", "events_lost permanent_error"
	}
	if err == nil || isPermanent(err) {
		w.expired(c, counter, events)
		w.leaveBeside(c, counter, events)
	}
	w.notef("%d expired streams: %v", len(c.spans), err)
}

// present notes that all consumers get a batch.
func (w *world) present(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range c.spans {
		if w.path == viaSpans {
			w.record(w.exporter, s.key, s.content, s.outcome, s.cut)
		}
		w.presented++
		if v := verdictsOf(s.content, s.outcome, s.cut); v["ttft"] == "bad" || v["tpot"] == "bad" {
			w.breached[s.key] = true
			if !w.sinks.refuse {
				w.sinks.owed[s.key] = true
			}
		}
	}
}

// stored notes what the backend accepted.
func (w *world) stored(traces ptrace.Traces) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.backend += traces.SpanCount()
	return nil
}
