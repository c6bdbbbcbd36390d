// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"testing"
)

func BenchmarkAppend(b *testing.B) {
	var line Timeline
	b.ReportAllocs()
	for i := range b.N {
		if i%1000 == 0 {
			line.Reset()
		}
		line.Append(start+int64(i)*20_000_000, 1, Content)
	}
}

func BenchmarkWalk(b *testing.B) {
	var line Timeline
	for i := range int64(1000) {
		line.Append(start+i*20_000_000, 1, Content)
	}
	stored := line.AppendBinary(nil, start)
	b.SetBytes(int64(len(stored)) / 1000)
	b.ReportAllocs()
	for n := 0; n < b.N; {
		walk, err := Decode(stored)
		if err != nil {
			b.Fatal(err)
		}
		for ; walk.Next(); n++ {
		}
	}
}

func BenchmarkNextRun(b *testing.B) {
	var line Timeline
	for i := range int64(1000) {
		line.Append(start+i*20_000_000, 1, Content)
	}
	stored := line.AppendBinary(nil, start)
	var gaps [256]int64
	b.ReportAllocs()
	for i := 0; i < b.N; {
		walk, err := Decode(stored)
		if err != nil {
			b.Fatal(err)
		}
		for n, _, _ := walk.NextRun(gaps[:]); n > 0; n, _, _ = walk.NextRun(gaps[:]) {
			i += n
		}
	}
}

func BenchmarkScanGaps(b *testing.B) {
	var packed []byte
	for range 1000 {
		packed = binary.AppendUvarint(packed, 40_000)
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i += 1000 {
		if _, _, ok := ScanGaps(packed); !ok {
			b.Fatal()
		}
	}
}
