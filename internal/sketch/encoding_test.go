// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The buckets of 1 and 2 are one octave apart. A bucket with count 0 between them is
// rejected, although the rest of the sketch is consistent.
func TestMergeBinary_RejectsBucketWithCountZero(t *testing.T) {
	var s Sketch
	s.Add(1, 1)
	s.Add(2, 1)
	whole := s.AppendBinary(nil)
	between := binary.AppendUvarint(nil, perOctave-1)
	between = append(between, 1)
	require.Equal(t, between, whole[len(whole)-2:])

	empty := append(slices.Clone(whole[:len(whole)-2]), 10, 0, perOctave-1-11, 1)
	var into Sketch
	require.ErrorIs(t, into.MergeBinary(empty), errMalformed)
	require.Equal(t, Sketch{}, into)

	filled := append(slices.Clone(whole[:len(whole)-2]), 10, 1, perOctave-1-11, 1)
	filled = slices.Replace(filled, 1, 9, binary.LittleEndian.AppendUint64(nil, 0x4010000000000000)...) // sets the sum to 4
	require.NoError(t, into.MergeBinary(filled))
	require.EqualValues(t, 3, into.Count())
}
