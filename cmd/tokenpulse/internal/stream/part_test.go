// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJoin_MergesPartsPerStream(t *testing.T) {
	a := &Stream{Chunks: make([]Chunk, 5), Scheduled: 1, End: &End{}}
	b := &Stream{Chunks: make([]Chunk, 2), End: &End{}}
	tests := map[string]struct{ parts, joined []Part }{
		"no parts": {nil, nil},
		"events of two streams": {
			[]Part{
				{Stream: a, Start: true},
				{Stream: b, From: 1, To: 2},
				{Stream: a, Scheduled: true},
				{Stream: a, To: 1},
				{Stream: b, From: 2, To: 2, End: true},
				{Stream: a, From: 1, To: 3},
			},
			[]Part{{Stream: a, Start: true, Scheduled: true, To: 3}, {Stream: b, From: 1, To: 2, End: true}},
		},
		"end of a stream that was sent before": {
			[]Part{{Stream: a, From: 3, To: 4}, {Stream: a, From: 4, To: 5}, {Stream: a, From: 5, To: 5, End: true}},
			[]Part{{Stream: a, From: 3, To: 5, End: true}},
		},
		"parts without chunks": {
			[]Part{{Stream: b, Start: true}, {Stream: b, End: true}},
			[]Part{{Stream: b, Start: true, End: true}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(test.parts)
			require.Equal(t, test.joined, Join(test.parts))
			require.Equal(t, before, test.parts)
		})
	}
}

func TestCancelled_DropsLaterEvents(t *testing.T) {
	s := &Stream{
		ID: "s", Start: 100, Scheduled: 110, Chunks: []Chunk{{Time: 120}, {Time: 140}, {Time: 130}},
		End: &End{Time: 150, FinishReason: "stop"},
	}
	tests := map[string]struct {
		at       int64
		expected Stream
	}{
		"before it was scheduled": {105, Stream{ID: "s", Start: 100, Chunks: []Chunk{}, End: &End{Time: 105, Cancelled: true}}},
		"between two chunks":      {120, Stream{ID: "s", Start: 100, Scheduled: 110, Chunks: []Chunk{{Time: 120}}, End: &End{Time: 120, Cancelled: true}}},
		"after the last chunk":    {145, Stream{ID: "s", Start: 100, Scheduled: 110, Chunks: s.Chunks, End: &End{Time: 145, Cancelled: true}}},
		"before it started":       {1, Stream{ID: "s", Start: 100, Chunks: []Chunk{}, End: &End{Time: 100, Cancelled: true}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, &test.expected, s.Cancelled(test.at))
			require.Len(t, s.Chunks, 3)
			require.False(t, s.End.Cancelled)
		})
	}
}
