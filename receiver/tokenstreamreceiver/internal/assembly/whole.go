// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Whole is a stream that one message holds from its start to its end, in the order of time.
// It never enters the store. It refers to the memory of the message.
type Whole struct {
	// Message is the encoded stream, for a part in its place.
	Message []byte

	ID        []byte
	Resource  []byte // an encoded KeyValueList
	Start     Start
	Scheduled int64 // 0 if missing
	End       WholeEnd
	// Attributes and EndAttributes are the rest of the encoded start and end from their first
	// attribute on. They are not checked: other fields may be between the attributes.
	Attributes, EndAttributes []byte

	// FirstChunk is the time of the first chunk, 0 without chunks. Gaps are packed as in a
	// timeline: a zero, then one for each further chunk.
	FirstChunk int64
	Gaps       []byte
	Chunks     int
	Channel    timeline.Channel
}

// WholeEnd is the end of a whole stream.
type WholeEnd struct {
	UnixNano          int64
	Usage             Usage
	Failed, Cancelled bool
	// Text is the size of the finish reason and the error in bytes.
	Text int
}

// Walk starts a walk over the chunks, relative to the start.
func (w *Whole) Walk() timeline.Walk {
	if w.Chunks == 0 {
		return timeline.Walk{}
	}
	return timeline.WalkGaps(w.FirstChunk, w.Start.UnixNano, w.Gaps, w.Chunks, w.Channel)
}

// Accepts reports whether the whole stream would be accepted without any change. A stream that
// is not is decoded into a part, which finds out what is wrong with it.
func (b *Batch) Accepts(w *Whole) bool {
	start := w.Start.UnixNano
	if len(w.ID) == 0 || len(w.ID) > MaxIDBytes || checkPlausible(start) != nil || w.Start.Vantage > timeline.VantageEngine {
		return false
	}
	within := func(unixNano int64) bool {
		return start-int64(MaxDuration) <= unixNano && unixNano <= start+int64(MaxDuration)
	}
	if !within(w.End.UnixNano) || w.Scheduled != 0 && !within(w.Scheduled) {
		return false
	}
	usage := &w.End.Usage
	for _, count := range [...]*optional.Value[int64]{&usage.Input, &usage.Output, &usage.Reasoning, &usage.CachedInput, &usage.CacheWrite} {
		if count.Value < 0 || count.Value > maxCount {
			return false
		}
	}
	if len(w.ID)+len(w.Resource)+len(w.Attributes)+len(w.EndAttributes)+w.End.Text > b.limits.MaxStreamBytes {
		return false
	}
	if w.Chunks == 0 { // then the rules of an answer without tokens apply, unless its end decides
		return w.End.Failed || w.End.Cancelled
	}
	return w.acceptsChunks(within, b.limits.MaxChunksPerStream)
}

// acceptsChunks checks the chunks, and counts them.
func (w *Whole) acceptsChunks(within func(int64) bool, limit int) bool {
	chunks, ticks, ok := timeline.ScanGaps(w.Gaps)
	w.Chunks = chunks
	return ok && chunks <= limit && w.Gaps[0] == 0 && within(w.FirstChunk) && within(w.FirstChunk+ticks*int64(timeline.Tick))
}

// IsOpen reports whether a stream is open.
func (s *Store) IsOpen(id []byte) bool {
	if s.streams.Load() == 0 { // those that a transaction is about to open come later
		return false
	}
	shard := s.shardOf(string(id))
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return shard.streams[string(id)] != nil
}

// Has reports whether the batch has a part of a stream.
func (b *Batch) Has(id []byte) bool {
	if b.used == 0 {
		return false
	}
	_, ok := b.index[string(id)]
	return ok
}

// GrowBy reserves memory for whole streams beside the batch's parts. It reports whether there
// is memory, and room within MaxParts.
func (b *Batch) GrowBy(streams int) bool {
	if b.used+b.wholes+streams > MaxParts || !b.grows(int64(streams)*wholeMemory) {
		return false
	}
	b.wholes += streams
	return true
}

// wholeMemory is the memory of a whole stream.
const wholeMemory = 512

// Whole returns the stream of a part that starts and ends it, as Begin would finish it.
func (b *Batch) Whole(id []byte) Finished {
	part := b.parts[b.index[string(id)]]
	return Finished{Stream: &part.Stream, End: &part.end, Client: &b.Client}
}
