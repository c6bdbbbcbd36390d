// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"fmt"
)

// A stored timeline consists of
//   - a version byte
//   - the number of chunks (varint)
//   - the first chunk's time since the stream's start, in nanoseconds (zigzag
//     varint; negative if the clock went back)
//   - the nanoseconds by which truncation to a tick lowers the first chunk's time
//     (varint)
//   - the runs until all chunks are covered, each as two varints: the number of
//     chunks, and tokens << 2 | channel; chunks of audio have 0 tokens
//   - the gaps, one varint for each chunk: zigzag(ticks since the previous chunk)
const version = 2

// AppendBinary appends the stored form to dst, with times relative to the
// stream's start.
func (t *Timeline) AppendBinary(dst []byte, startUnixNano int64) []byte {
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, uint64(t.count))
	dst = binary.AppendUvarint(dst, zigzag(t.first-startUnixNano))
	dst = binary.AppendUvarint(dst, uint64(t.cut()))
	dst = append(dst, t.runs...)
	if t.count > 0 {
		dst = t.last.appendBinary(dst)
	}
	return append(dst, t.gaps...)
}

// Decode starts a walk over the stored form. Offsets are relative to the stream's
// start. The walk reads b, which must not change meanwhile. Errors in the gaps,
// such as an offset of more than 142 years, stop the walk: check Walk.Err at the end.
func Decode(b []byte) (Walk, error) {
	if len(b) == 0 {
		return Walk{}, errTruncated
	}
	if b[0] != version {
		return Walk{}, fmt.Errorf("unknown timeline version %d; this build reads version %d", b[0], version)
	}
	b = b[1:]
	var header [3]uint64
	for i := range header {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return Walk{}, errTruncated
		}
		header[i], b = v, b[n:]
	}
	count, first, cut := header[0], unzigzag(header[1]), header[2]
	if count > uint64(len(b)) || cut >= uint64(Tick) || !withinBounds(first/int64(Tick)) { // a chunk takes at least a byte
		return Walk{}, errTruncated
	}
	length, audio, ok := lengthOfRuns(b, count)
	if !ok {
		return Walk{}, errTruncated
	}
	return Walk{offset: first, grid: first - int64(cut), left: int(count), runs: b[:length], gaps: b[length:], audio: audio}, nil
}

// lengthOfRuns returns the encoded length of the runs that cover that many chunks, and whether some are of Audio.
func lengthOfRuns(b []byte, chunks uint64) (length int, audio, ok bool) {
	for chunks > 0 {
		r, n := readRun(b[length:])
		if n == 0 || r.chunks == 0 || uint64(r.chunks) > chunks || !validMeta(r.meta) {
			return 0, false, false
		}
		audio = audio || channelOf(r.meta) == Audio
		chunks -= uint64(r.chunks)
		length += n
	}
	return length, audio, true
}

func validMeta(meta uint32) bool {
	tokens := tokensOf(meta)
	if channelOf(meta) == Audio {
		return tokens == 0
	}
	return tokens >= 1 && tokens <= MaxTokensPerChunk
}
