// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// chunkOffsets reads spans whose sender wrote the arrivals of chunks as plain attributes. An application
// may add these to the span of any instrumentation.
var chunkOffsets = reader{
	name:      names.SourceChunkOffsets,
	vantageOf: conventionsVantage,
	signs:     []*sign{{key: names.ChunkOffsets}},
	claims:    func(c candidate) bool { return !c.has(names.Timeline) },
	attribute: tokenStream.attribute,
	read:      (*Observation).readChunkOffsets,
}

// readChunkOffsets reads the arrivals, and the outcome, which replaces one derived from finish reasons.
// Offsets are relative to the span's start, so the walk is too.
func (o *Observation) readChunkOffsets(span ptrace.Span, chunks *timeline.Timeline) error {
	if outcome := attributes.Text(span.Attributes(), names.Outcome); outcome != "" {
		o.Request.Outcome = outcome
	}
	if err := attributes.ReadChunkOffsets(span.Attributes(), chunks); err != nil {
		return err
	}
	o.Timeline = chunks.WalkFrom(0)
	return nil
}
