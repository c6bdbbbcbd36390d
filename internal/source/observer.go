// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package source reads the spans of model calls, whichever instrumentation sent them: when a call
// began and ended, when its tokens arrived, and what else the span reports. Each instrumentation has
// a reader in a file of its own; a new one takes that file and a line in the list of readers.
package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Observer reads spans one after the other. It is not safe for concurrent use.
type Observer struct {
	observation Observation
	frames      timeline.Timeline
	unclaimed   bool
}

// Unclaimed reports whether the last span looks like a model call, though no reader claimed it.
func (observer *Observer) Unclaimed() bool { return observer.unclaimed }

// maxKeptFrames is the maximum size in bytes of the frames buffer that is kept for the next span.
const maxKeptFrames = 64 << 10

// Observe returns what a span reports about a model call, or nil if no reader claims the span. If a
// claimed span cannot be read, it returns an error and an observation whose Reader is set. The
// observation is valid until the next call.
func (observer *Observer) Observe(scope string, span ptrace.Span) (*Observation, error) {
	c, seen := look(scope, span)
	i := match(c, seen)
	observer.unclaimed = i == noReader && c.resemblesModelCall()
	if i == noReader || readers[i].read == nil && wasDerived(c) {
		return nil, nil //nolint:nilnil // most spans are not model calls, which is not an error
	}
	r, o := &readers[i], &observer.observation
	*o = Observation{
		Reader: i, Vantage: r.vantageIn(c), Unannotated: !c.mayHave(names.Prefix),
		start: span.StartTimestamp(), firstChunkIsFrame: r.firstChunkIsFrame,
	}
	o.Request.Duration = duration(span)
	o.Request.Failed = span.Status().Code() == ptrace.StatusCodeError
	for key, v := range span.Attributes().All() {
		if a := aliases.Get(key); a != nil {
			o.readStandard(a, v)
		}
		if key == names.Interrupted {
			o.Request.Interrupted = v.Bool()
		}
		if r.attribute != nil {
			r.attribute(o, key, v)
		}
	}
	o.adoptStandard()
	if r.read != nil {
		return o, r.read(o, span, observer.emptyFrames())
	}
	o.readUnitlessFirstToken(r, c)
	o.readEvents(r, span, observer.emptyFrames())
	o.conclude(r, c)
	return o, nil
}

// emptyFrames returns the buffer for a span's frames.
func (observer *Observer) emptyFrames() *timeline.Timeline {
	if observer.frames.Size() > maxKeptFrames {
		observer.frames = timeline.Timeline{}
	}
	observer.frames.Reset()
	return &observer.frames
}

// wasDerived reports whether a token_latency processor has already read the span.
func wasDerived(c candidate) bool { return c.has(names.Source) }

// duration is negative for a span that ends before it starts. It wraps around, without a panic, for
// timestamps that are more than 292 years apart.
func duration(span ptrace.Span) time.Duration {
	return time.Duration(span.EndTimestamp() - span.StartTimestamp())
}
