// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// WriteEvents adds an event to the span of a request for its first token, its longest stalls and its last
// token, if the settings ask for them. They replace those that an earlier processor wrote.
func (a *Annotator) WriteEvents(span ptrace.Span, moments *latency.Moments) {
	if !a.events {
		return
	}
	RemoveEvents(span)
	add := func(name string, at time.Duration) pcommon.Map {
		event := span.Events().AppendEmpty()
		event.SetName(name)
		event.SetTimestamp(span.StartTimestamp() + pcommon.Timestamp(at))
		return event.Attributes()
	}
	if moments.FirstToken.Known {
		add(names.FirstTokenEvent, moments.FirstToken.Value)
	}
	for _, stall := range moments.Stalls {
		attributes := add(names.StallEvent, stall.At)
		attributes.PutDouble(numbers.StallDuration.Attribute(), stall.Duration.Seconds())
		attributes.PutInt(names.TokenIndex, stall.Token)
	}
	if moments.LastToken.Known {
		add(names.LastTokenEvent, moments.LastToken.Value)
	}
}

// momentEvents are the names of the events that WriteEvents adds.
var momentEvents = []string{names.FirstTokenEvent, names.StallEvent, names.LastTokenEvent}

// RemoveEvents removes the events that WriteEvents adds from a span.
func RemoveEvents(span ptrace.Span) {
	span.Events().RemoveIf(func(event ptrace.SpanEvent) bool { return slices.Contains(momentEvents, event.Name()) })
}
