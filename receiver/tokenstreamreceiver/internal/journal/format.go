// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"strconv"
)

// A segment consists of
//   - a version byte
//   - the CRC-32C of its key and of all that follows (4 bytes, big endian), so that a
//     segment in the place of another one is noticed
//   - the number of the previous segment (8 bytes, big endian; 0 if none is stored), so
//     that a missing segment is noticed
//   - records
//
// and a record of
//   - the entry's number << 2 | kind (varint)
//   - the sequence number of the record within the entry (varint), so that the loss of a
//     segment is noticed
//   - the length of the content (varint) and the content, unless it is a finish
//
// The index has the same beginning. Three varints follow: the first segment, and the bounds
// that the numbers of segments and of entries have not reached. Segments that the index
// covers may be missing: they were deleted, or not written yet.
const (
	version      = 1
	headerLength = checked + 8
	checked      = 1 + crc32.Size // where the checksum begins to count
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errDamaged = errors.New("damaged: the checksum differs")
	errVersion = errors.New("written by another build of tokenpulse, or damaged; its streams are lost, so let streams end before you change the build")
	errRecord  = errors.New("malformed record")
)

// seal writes the header of a segment or index, for which b has room.
func seal(key string, previous uint64, b []byte) []byte {
	b[0] = version
	binary.BigEndian.PutUint64(b[checked:], previous)
	binary.BigEndian.PutUint32(b[1:], checksum(key, b))
	return b
}

func checksum(key string, b []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, b[checked:])
}

// unseal checks the header and returns what follows.
func unseal(key string, b []byte) (previous uint64, content []byte, err error) {
	switch {
	case len(b) < headerLength:
		return 0, nil, errDamaged
	case b[0] != version:
		return 0, nil, errVersion
	case binary.BigEndian.Uint32(b[1:]) != checksum(key, b):
		return 0, nil, errDamaged
	}
	return binary.BigEndian.Uint64(b[checked:]), b[headerLength:], nil
}

// appendRecord appends a record of an entry.
func appendRecord(b []byte, number, sequence uint64, k kind, content []byte) []byte {
	b = binary.AppendUvarint(b, number<<2|uint64(k))
	b = binary.AppendUvarint(b, sequence)
	if k == finish {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(content)))
	return append(b, content...)
}

// stored is a record as it is stored.
type stored struct {
	number, sequence uint64
	kind             kind
	content          []byte
}

// readRecord reads the first record of b and returns the rest.
func readRecord(b []byte) (r stored, rest []byte, err error) {
	first, b := readUvarint(b)
	r.number, r.kind = first>>2, kind(first&3)
	r.sequence, b = readUvarint(b)
	if r.kind == finish && b != nil {
		return r, b, nil
	}
	length, b := readUvarint(b)
	if r.kind >= kinds || b == nil || length > uint64(len(b)) {
		return r, nil, errRecord
	}
	r.content = b[:length]
	return r, b[length:], nil
}

// readUvarint reads a varint and returns the rest, which is nil if it is malformed.
func readUvarint(b []byte) (v uint64, rest []byte) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil
	}
	return v, b[n:]
}

// index says where segments and numbers are.
type index struct {
	first uint64 // segment before which none is stored
	// Numbers of segments and entries that were not used before the index was written again.
	segments, numbers uint64
}

const indexKey = "index"

func segmentKey(number uint64) string { return "segment/" + strconv.FormatUint(number, 36) }

func (i index) encode() []byte {
	b := make([]byte, headerLength, headerLength+3*binary.MaxVarintLen64)
	for _, v := range [...]uint64{i.first, i.segments, i.numbers} {
		b = binary.AppendUvarint(b, v)
	}
	return seal(indexKey, 0, b)
}

func decodeIndex(b []byte) (i index, err error) {
	if _, b, err = unseal(indexKey, b); err != nil {
		return index{}, err
	}
	i.first, b = readUvarint(b)
	i.segments, b = readUvarint(b)
	i.numbers, b = readUvarint(b)
	if b == nil || i.first == 0 || i.segments < i.first || i.segments > math.MaxInt64 || i.numbers > math.MaxInt64 {
		return index{}, errDamaged
	}
	return i, nil
}
