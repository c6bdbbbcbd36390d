// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// Field numbers of ChunkRun in proto/tokenpulse/v1/token_stream.proto.
const (
	runChannel  = 1
	runTime     = 2
	runUnit     = 3
	runDeltas   = 4
	runTokens   = 5
	runFirstSeq = 6
)

// chunkRuns decodes ChunkRun messages. Its buffers are reused for every run.
type chunkRuns struct{ deltas, tokens []byte }

// decode adds the chunks of a run to the part. It locates the packed fields first,
// because time_deltas and tokens are read side by side.
func (c *chunkRuns) decode(message []byte, part *assembly.Part) error {
	var channel, unit, firstSeq uint64
	var numbered bool
	var at int64
	c.deltas, c.tokens = c.deltas[:0], c.tokens[:0]
	deltas, tokens := packed{buffer: c.deltas}, packed{buffer: c.tokens}
	f := fieldsOf(message)
	for f.next() {
		switch {
		case f.is(runChannel, varintType):
			channel = uint64(uint32(f.number))
		case f.is(runTime, fixed64Type):
			at = int64(f.number)
		case f.is(runUnit, varintType):
			unit = f.number
		case f.num == runDeltas:
			deltas.add(&f)
		case f.num == runTokens:
			tokens.add(&f)
		case f.is(runFirstSeq, varintType):
			firstSeq, numbered = f.number, true
		}
	}
	c.deltas, c.tokens = deltas.buffer, tokens.buffer
	if err := f.truncated("chunk_runs"); err != nil {
		return err
	}
	fast := !numbered && len(tokens.bytes) == 0 && unit == uint64(timeline.Tick) && channel <= uint64(timeline.Audio)
	if fast && addGaps(part, at, deltas.bytes, timeline.Channel(channel)) {
		return nil
	}
	// Malformed bytes take precedence over invalid values.
	count, ok := deltas.count()
	if !ok {
		return errTruncated("time_deltas")
	}
	tokenCount, ok := tokens.count()
	if !ok {
		return errTruncated("tokens")
	}
	switch {
	case at < 0:
		return invalid("`time_unix_nano` is %d; send nanoseconds since 1970", uint64(at))
	case channel > uint64(timeline.Audio):
		return errChannel
	case unit > uint64(assembly.MaxDuration):
		return invalid("`delta_unit_nanos` is %d, more than a day; send the unit in nanoseconds, such as 1000", unit)
	case tokenCount != 0 && tokenCount != count:
		return invalid("`tokens` has %d entries for %d `time_deltas`; send one for each chunk, or no `tokens` if each chunk is one token", tokenCount, count)
	case firstSeq > math.MaxInt64-uint64(count):
		return invalid("`first_sequence_number` is %d; send at most %d for this run", firstSeq, math.MaxInt64-uint64(count))
	}
	chunk := assembly.Chunk{
		UnixNano: at, Seq: firstSeq, Tokens: 1, Numbered: numbered,
		Channel: timeline.Channel(channel),
	}
	return addChunks(part, chunk, deltas.bytes, int64(max(1, unit)), tokens.bytes)
}

// addGaps copies deltas that are encoded like those of a
// timeline, one token each. It reports false, and adds nothing, for all others.
func addGaps(part *assembly.Part, at int64, deltas []byte, channel timeline.Channel) bool {
	encoded, width := binary.Uvarint(deltas)
	if width <= 0 {
		return false
	}
	first := protowire.DecodeZigZag(encoded)
	if first < 0 || first > int64(assembly.MaxDuration/timeline.Tick) { // prevents overflow
		return false
	}
	return part.AddGaps(at+first*int64(timeline.Tick), deltas[width:], channel)
}

// addChunks adds a chunk for each delta, with its token count if tokens is not empty. chunk has the
// time before the first delta, and the first sequence number.
func addChunks(part *assembly.Part, chunk assembly.Chunk, deltas []byte, unit int64, tokens []byte) error {
	// Below this limit no product overflows. A sum can leave the accepted range
	// only by less than 73 years, so the batch always rejects it before it wraps.
	limit := protowire.EncodeZigZag(math.MaxInt64 / 4 / unit)
	for len(deltas) > 0 {
		delta, n := protowire.ConsumeVarint(deltas)
		if delta > limit {
			return invalid("`time_deltas` has a delta of more than 73 years; check `delta_unit_nanos`, and that all times are nanoseconds since 1970")
		}
		deltas = deltas[n:]
		chunk.UnixNano += protowire.DecodeZigZag(delta) * unit
		if len(tokens) > 0 {
			count, n := protowire.ConsumeVarint(tokens)
			tokens = tokens[n:]
			chunk.Tokens = uint32(count)
		}
		if err := part.AddChunk(chunk); err != nil {
			return err
		}
		chunk.Seq++
	}
	return nil
}
