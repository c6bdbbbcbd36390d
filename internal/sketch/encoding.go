// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// An encoded sketch consists of
//   - a version byte
//   - sum, min and max (64-bit floats, little endian)
//   - the count of zeros (varint)
//   - for each non-empty bucket, in ascending order: the number of empty buckets
//     since the previous entry, or since the lowest possible bucket (varint), and
//     its count (varint)
const version = 1

const headerSize = 1 + 3*8

// AppendBinary appends the encoded sketch to dst.
func (s *Sketch) AppendBinary(dst []byte) []byte {
	dst = append(dst, version)
	for _, v := range [...]float64{s.sum, s.min, s.max} {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	dst = binary.AppendUvarint(dst, s.zeros)
	next := lowestIndex
	for index, n := range s.Buckets() {
		dst = binary.AppendUvarint(dst, uint64(index-next))
		dst = binary.AppendUvarint(dst, n)
		next = index + 1
	}
	return dst
}

var errMalformed = errors.New("sketch is truncated or malformed")

// MergeBinary adds all values of an encoded sketch. On an error it adds nothing.
func (s *Sketch) MergeBinary(encoded []byte) error {
	e, err := Parse(encoded)
	if err == nil {
		s.MergeEncoded(&e)
	}
	return err
}

// Encoded is a validated sketch whose buckets are still encoded: it allocates
// nothing, and merging it visits only its non-empty buckets. It refers to the bytes
// that it was parsed from, which must not change.
type Encoded struct {
	summary     Sketch // without buckets
	buckets     []byte
	first, last int // bucket indexes, valid if buckets is not empty
}

// Count returns how many values the sketch holds.
func (e *Encoded) Count() uint64 { return e.summary.count }

// Sum returns the sum of all values.
func (e *Encoded) Sum() float64 { return e.summary.sum }

// Max returns the largest value, or 0 for an empty sketch.
func (e *Encoded) Max() float64 { return e.summary.max }

// MergeEncoded adds all values of an encoded sketch.
func (s *Sketch) MergeEncoded(e *Encoded) {
	other := &e.summary
	if other.count == 0 {
		return
	}
	s.summarize(other.count, other.sum, other.min, other.max)
	s.zeros += other.zeros
	if len(e.buckets) == 0 {
		return
	}
	s.cover(e.first)
	s.cover(e.last)
	slot := lowestIndex - s.lowest
	for rest := e.buckets; len(rest) > 0; slot++ {
		skipped, n, width := uint64(rest[0]), uint64(0), 2
		if isTwoBytes(rest) {
			n = uint64(rest[1])
		} else {
			skipped, n, width = readBucket(rest)
		}
		slot += int(skipped)
		s.counts[slot] += n
		rest = rest[width:]
	}
}

// Parse validates an encoded sketch.
func Parse(encoded []byte) (e Encoded, err error) {
	if len(encoded) == 0 {
		return e, errMalformed
	}
	if encoded[0] != version {
		return e, fmt.Errorf("unknown sketch version %d; this build reads version %d", encoded[0], version)
	}
	if len(encoded) < headerSize {
		return e, errMalformed
	}
	s := &e.summary
	for i, v := range [...]*float64{&s.sum, &s.min, &s.max} {
		*v = math.Float64frombits(binary.LittleEndian.Uint64(encoded[1+8*i:]))
		if !(*v >= 0) || math.IsInf(*v, 0) {
			return e, errMalformed
		}
	}
	zeros, n := binary.Uvarint(encoded[headerSize:])
	if n <= 0 || zeros > maxBucketCount {
		return e, errMalformed
	}
	s.zeros = zeros
	e.buckets = encoded[headerSize+n:]
	if err = e.checkBuckets(); err == nil && s.count > 0 && !e.consistent() {
		err = errInconsistent
	}
	return e, err
}

// checkBuckets validates the buckets, and sets their range and the total count.
func (e *Encoded) checkBuckets() error {
	index, count := lowestIndex-1, e.summary.zeros
	for rest := e.buckets; len(rest) > 0; {
		skipped, n, width := uint64(rest[0]), uint64(0), 2
		if isTwoBytes(rest) {
			n = uint64(rest[1])
		} else {
			skipped, n, width = readBucket(rest)
		}
		if width <= 0 || n-1 >= maxBucketCount || skipped >= uint64(lowestIndex+indexCount-1-index) {
			return errMalformed
		}
		if index < lowestIndex {
			e.first = lowestIndex + int(skipped)
		}
		index += 1 + int(skipped)
		count += n
		rest = rest[width:]
	}
	e.last, e.summary.count = index, count
	return nil
}

var errInconsistent = errors.New("sketch is inconsistent: its sum, min or max does not match its buckets")

// consistent reports whether sum, min and max can belong to values in the buckets.
// An inconsistent sketch would corrupt every sketch that it is merged into.
func (e *Encoded) consistent() bool {
	const rounding = 1e-6 // relative error of a sum of many floats
	s, first, last := &e.summary, e.first, e.last
	if s.zeros > 0 {
		first = zeroBucket
	}
	n := float64(s.count)
	return bucketOf(s.min) == first && bucketOf(s.max) == last && s.min <= s.max && s.max <= MaxValue &&
		s.sum >= s.min*n*(1-rounding) && s.sum <= s.max*n*(1+rounding)
}

// zeroBucket stands for the zeros, which are below all buckets.
const zeroBucket = lowestIndex - 1

func bucketOf(v float64) int {
	if v <= ZeroThreshold {
		return zeroBucket
	}
	return Index(v)
}

// maxBucketCount keeps the sum of all bucket counts from overflowing.
const maxBucketCount = 1 << 52

// isTwoBytes reports whether the next bucket takes two bytes, as nearly all do. The
// compiler inlines it, unlike readBucket.
func isTwoBytes(encoded []byte) bool { return len(encoded) >= 2 && encoded[0]|encoded[1] < 0x80 }

// readBucket decodes the next bucket. width is its length in bytes, or 0 if it is
// malformed.
func readBucket(encoded []byte) (skipped, n uint64, width int) {
	skipped, a := binary.Uvarint(encoded)
	if a <= 0 {
		return 0, 0, 0
	}
	n, b := binary.Uvarint(encoded[a:])
	if b <= 0 {
		return 0, 0, 0
	}
	return skipped, n, a + b
}
