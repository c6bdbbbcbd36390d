// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScanGaps_RejectsNegativeLongAndTruncatedGaps(t *testing.T) {
	uvarints := func(values ...uint64) (packed []byte) {
		for _, v := range values {
			packed = binary.AppendUvarint(packed, v)
		}
		return packed
	}
	for name, packed := range map[string][]byte{
		"negative gap":                 uvarints(40_000, 39_999, 40_000, 40_000),
		"negative gap at the end":      uvarints(40_000, 3),
		"gap of four bytes":            uvarints(40_000, 1<<21, 40_000, 40_000),
		"gap of four bytes at the end": uvarints(40_000, 1<<21),
		"truncated gap":                uvarints(40_000, 40_000, 40_000)[:8],
		"truncated gap of four bytes":  {0x80, 0x80, 0x80, 0x80},
	} {
		_, _, ok := ScanGaps(packed)
		require.False(t, ok, name)
	}
	chunks, ticks, ok := ScanGaps(uvarints(0, 2, 1<<21-2, 254, 256, 16_382, 16_384))
	require.True(t, ok)
	require.Equal(t, 7, chunks)
	require.EqualValues(t, 1+1<<20-1+127+128+8191+8192, ticks)
	_, _, ok = ScanGaps([]byte{0x82, 0x80, 0x00}) // a longer form of 2
	require.True(t, ok)
}

// Gaps of each width, and bits that turn them into negative, longer and truncated ones, lie at each
// place in the words that are read at once.
func TestScanGaps_DamagedGapsAtEachPlace(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	const rounds = 20_000
	for range rounds {
		var packed []byte
		for range random.IntN(12) {
			packed = binary.AppendUvarint(packed, random.Uint64N(1<<random.IntN(22))&^1)
		}
		if len(packed) > 0 && random.IntN(2) == 0 {
			packed[random.IntN(len(packed))] ^= []byte{0x01, 0x80}[random.IntN(2)]
		}
		if requireScanned(t, packed) {
			accepted++
		}
	}
	require.Greater(t, accepted, rounds/2)
	require.Less(t, accepted, rounds*9/10, "too little damage")
}

func FuzzScanGaps(f *testing.F) {
	f.Add([]byte{0, 0x80, 0x01, 0xa0, 0x9c, 0x01, 0xa0, 0x9c, 0x01, 0xa0, 0x9c, 0x01})
	f.Fuzz(func(t *testing.T, packed []byte) { requireScanned(t, packed) })
}

// requireScanned compares ScanGaps with a plain loop. It reports whether both accept the
// gaps.
func requireScanned(t *testing.T, packed []byte) bool {
	t.Helper()
	chunks, ticks, ok := ScanGaps(packed)
	var plainChunks int
	var plainTicks int64
	plain := true
	for rest := packed; len(rest) > 0 && plain; plainChunks++ {
		v, n := binary.Uvarint(rest)
		if plain = n > 0 && n <= 3 && v&1 == 0; plain {
			plainTicks += int64(v / 2)
			rest = rest[n:]
		}
	}
	require.Equal(t, plain, ok, "%x", packed)
	if ok {
		require.Equal(t, plainChunks, chunks, "%x", packed)
		require.Equal(t, plainTicks, ticks, "%x", packed)
	}
	return plain
}
