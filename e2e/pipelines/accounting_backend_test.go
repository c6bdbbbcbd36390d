// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Attributes with which the senders of the accounting tests describe their streams.
const (
	// extraEvents is the number of events besides the start, the chunks and the end.
	extraEvents = "test.extra_events"
	// chunksOfMessage is set if an event is a message with that number of chunks.
	chunksOfMessage = "test.chunks_of_message"
)

// acceptedEvents returns the number of accepted events that a span is made of.
func acceptedEvents(span ptrace.Span) int64 {
	attributes := span.Attributes()
	chunks := numberOf(attributes, "tokenpulse.chunk.count") - numberOf(attributes, names.ChunksDropped)
	if each := numberOf(attributes, chunksOfMessage); each > 0 {
		return chunks / each
	}
	events := 1 + chunks + numberOf(attributes, extraEvents)
	if outcome, _ := attributes.Get(names.Outcome); outcome.Str() != names.OutcomeIncomplete {
		events++
	}
	return events
}

func numberOf(attributes pcommon.Map, name string) int64 {
	v, ok := attributes.Get(name)
	if !ok {
		return 0
	}
	return v.Int()
}
