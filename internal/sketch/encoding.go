package sketch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// # Encoding
//
// A version byte; sum, min and max as 64-bit floats (little endian); the count
// of zeros (varint); then for each bucket that is not empty, in ascending order,
// how many buckets were skipped since the one before (varint; the first counts
// from the lowest possible) and its count (varint).
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

// MergeBinary adds all values of an encoded sketch, or none when it is
// malformed.
func (s *Sketch) MergeBinary(encoded []byte) error {
	other, buckets, err := parse(encoded)
	if err != nil || other.count == 0 {
		return err
	}
	s.observe(other.count, other.sum, other.min, other.max)
	s.zeros += other.zeros
	return eachBucket(buckets, s.add)
}

// parse checks an encoded sketch. It returns all but the buckets, and these
// still encoded.
func parse(encoded []byte) (s Sketch, buckets []byte, err error) {
	if len(encoded) == 0 {
		return s, nil, errMalformed
	}
	if encoded[0] != version {
		return s, nil, fmt.Errorf("sketch has version %d, this build reads %d", encoded[0], version)
	}
	if len(encoded) < headerSize {
		return s, nil, errMalformed
	}
	for i, v := range [...]*float64{&s.sum, &s.min, &s.max} {
		*v = math.Float64frombits(binary.LittleEndian.Uint64(encoded[1+8*i:]))
		if !(*v >= 0) || math.IsInf(*v, 0) {
			return s, nil, errMalformed
		}
	}
	buckets = encoded[headerSize:]
	zeros, n := binary.Uvarint(buckets)
	if n <= 0 || zeros > maxBucketCount {
		return s, nil, errMalformed
	}
	s.zeros, s.count = zeros, zeros
	buckets = buckets[n:]
	first, last := zeroBucket, zeroBucket
	err = eachBucket(buckets, func(index int, n uint64) {
		if s.count == 0 {
			first = index
		}
		last = index
		s.count += n
	})
	if err == nil && s.count > 0 && !s.consistent(first, last) {
		err = errInconsistent
	}
	return s, buckets, err
}

var errInconsistent = errors.New("sketch contradicts itself: its sum, min and max do not fit its buckets")

// consistent tells whether sum, min and max can belong to values in the buckets
// first to last. A sketch that lies would spoil every sum it is merged into.
func (s *Sketch) consistent(first, last int) bool {
	const rounding = 1e-6 // of a sum of very many values
	n := float64(s.count)
	return bucketOf(s.min) == first && bucketOf(s.max) == last && s.max <= MaxValue &&
		s.sum >= s.min*n*(1-rounding) && s.sum <= s.max*n*(1+rounding)
}

// zeroBucket stands for the bucket of zeros, below all others.
const zeroBucket = lowestIndex - 1

func bucketOf(v float64) int {
	if v <= ZeroThreshold {
		return zeroBucket
	}
	return Index(v)
}

// maxBucketCount is low enough that the sum of all buckets does not wrap around.
const maxBucketCount = 1 << 52

func eachBucket(encoded []byte, visit func(index int, n uint64)) error {
	next := lowestIndex
	for len(encoded) > 0 {
		skipped, n, width := bucket(encoded)
		if width <= 0 || n == 0 || n > maxBucketCount || skipped >= uint64(lowestIndex+indexCount-next) {
			return errMalformed
		}
		index := next + int(skipped)
		visit(index, n)
		next = index + 1
		encoded = encoded[width:]
	}
	return nil
}

// bucket decodes the next bucket. Its width in bytes is 0 when that fails.
func bucket(encoded []byte) (skipped, n uint64, width int) {
	if len(encoded) >= 2 && encoded[0]|encoded[1] < 0x80 { // nearly all are like this
		return uint64(encoded[0]), uint64(encoded[1]), 2
	}
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
