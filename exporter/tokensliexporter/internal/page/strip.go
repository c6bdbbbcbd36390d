// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"slices"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/slowest"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// strip shows the chunks of a request.
type strip struct {
	At       []number `json:"at"`
	Tokens   []uint32 `json:"tokens"`
	Channels []string `json:"channels"`
	Stalled  []int    `json:"stalled"`
	Dropped  int      `json:"dropped"`
}

// maxChunks limits the chunks of a strip.
const maxChunks = 5000

// stripOf returns nil for a request without a timeline, or with a damaged one.
func stripOf(r *slowest.Entry) *strip {
	walk, err := timeline.Decode(r.Timeline)
	if err != nil {
		return nil
	}
	s := &strip{At: []number{}, Tokens: []uint32{}, Channels: []string{}, Stalled: []int{}}
	for walk.Next() {
		if len(s.At) == maxChunks {
			s.Dropped = 1 + walk.Left()
			break
		}
		s.At = append(s.At, number(walk.Offset().Seconds()))
		s.Tokens = append(s.Tokens, walk.Tokens())
		s.Channels = append(s.Channels, walk.Channel().String())
	}
	if r.Stalls > 0 {
		s.Stalled = s.longestGaps(int(r.Stalls))
	}
	return s
}

// longestGaps returns the chunks after the n longest gaps, in their order. Stalls are the
// gaps above a threshold, so they are the longest ones.
func (s *strip) longestGaps(n int) []int {
	if len(s.At) < 2 {
		return []int{}
	}
	chunks := make([]int, len(s.At)-1)
	for i := range chunks {
		chunks[i] = i + 1
	}
	gap := func(chunk int) number { return s.At[chunk] - s.At[chunk-1] }
	slices.SortFunc(chunks, func(a, b int) int { return cmp.Compare(gap(b), gap(a)) })
	chunks = chunks[:min(n, len(chunks))]
	slices.Sort(chunks)
	return chunks
}
