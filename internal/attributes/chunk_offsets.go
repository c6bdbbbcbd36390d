// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package attributes

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const (
	// maxOffsets is the largest number of chunks of a readable span. It is far above what fits beside
	// other spans into one OTLP message.
	maxOffsets = 100_000
	// maxOffset is 34 years: a longer request is not accepted either.
	maxOffset = 1 << 30 * time.Second
)

// ReadChunkOffsets appends the arrivals that a sender wrote as plain attributes. They are relative to the span's start.
func ReadChunkOffsets(attributes pcommon.Map, chunks *timeline.Timeline) error {
	stored, _ := attributes.Get(names.ChunkOffsets)
	if stored.Type() != pcommon.ValueTypeSlice {
		return fmt.Errorf("%s has type %s; it must be an array of integers", names.ChunkOffsets, stored.Type())
	}
	offsets := stored.Slice()
	if offsets.Len() > maxOffsets {
		return fmt.Errorf("%s has %d values; send at most %d, and the number of further chunks in %s",
			names.ChunkOffsets, offsets.Len(), maxOffsets, names.ChunksDropped)
	}
	tokens, err := listOfChunks(attributes, names.ChunkTokens, offsets.Len())
	if err != nil {
		return err
	}
	channels, err := listOfChunks(attributes, names.ChunkChannels, offsets.Len())
	if err != nil {
		return err
	}
	var last time.Duration
	for i := range offsets.Len() {
		microseconds, ok := Integer(offsets.At(i))
		offset := time.Duration(microseconds) * time.Microsecond
		if !ok || microseconds < 0 || microseconds > int64(maxOffset/time.Microsecond) || offset < last {
			return fmt.Errorf("%s[%d] must be a whole number of microseconds, from that of the chunk before it (or 0) to 34 years", names.ChunkOffsets, i)
		}
		n, channel := int64(1), timeline.Content
		if tokens.Len() > 0 {
			if n, ok = Integer(tokens.At(i)); !ok || n < 0 || n > timeline.MaxTokensPerChunk {
				return fmt.Errorf("%s[%d] must be an integer from 0 to %d", names.ChunkTokens, i, timeline.MaxTokensPerChunk)
			}
		}
		if channels.Len() > 0 {
			if channel, ok = timeline.ParseChannel(channels.At(i).Str()); !ok {
				return fmt.Errorf("%s[%d] must be content, reasoning, tool_call or audio", names.ChunkChannels, i)
			}
		}
		if n > 0 || channel == timeline.Audio {
			chunks.Append(int64(offset), uint32(n), channel)
		}
		last = offset
	}
	return nil
}

// PackedOffsets returns the chunk offsets of a span as an encoded timeline. It is nil if the span has
// none that can be read.
func PackedOffsets(attributes pcommon.Map) []byte {
	var chunks timeline.Timeline
	if _, ok := attributes.Get(names.ChunkOffsets); !ok || ReadChunkOffsets(attributes, &chunks) != nil {
		return nil
	}
	return chunks.AppendBinary(nil, 0)
}

// noList stands for a list that a span does not have.
var noList = pcommon.NewSlice()

// listOfChunks returns an optional list with a value for each of n chunks.
func listOfChunks(attributes pcommon.Map, name string, n int) (pcommon.Slice, error) {
	stored, ok := attributes.Get(name)
	switch {
	case !ok:
		return noList, nil
	case stored.Type() != pcommon.ValueTypeSlice:
		return noList, fmt.Errorf("%s has type %s; it must be an array", name, stored.Type())
	case stored.Slice().Len() != n:
		return noList, fmt.Errorf("%s has %d values and %s %d; send one for each chunk", name, stored.Slice().Len(), names.ChunkOffsets, n)
	}
	return stored.Slice(), nil
}
