// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
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
		s.Stalled = s.stalls(r)
	}
	return s
}

// largestGap returns the longest time between two chunks, 0 without a strip or with one chunk.
func (s *strip) largestGap() (gap number) {
	if s == nil {
		return 0
	}
	for i := 1; i < len(s.At); i++ {
		gap = max(gap, s.At[i]-s.At[i-1])
	}
	return gap
}

// stalls returns the chunks before which the stream stalled, in their order. Stalls are the gaps above a threshold, so they
// are the longest ones. The wait at the end of a cancelled request may be one of them, and is before no chunk.
func (s *strip) stalls(r *slowest.Entry) []int {
	chunks := []int{}
	for i := 1; i < len(s.At); i++ {
		chunks = append(chunks, i)
	}
	gap := func(chunk int) number { return s.At[chunk] - s.At[chunk-1] }
	slices.SortFunc(chunks, func(a, b int) int { return cmp.Compare(gap(b), gap(a)) })
	n := int(r.Stalls)
	if n <= len(chunks) && r.Outcome == series.Cancelled && number(tailOf(r)) >= gap(chunks[n-1]) {
		n--
	}
	chunks = chunks[:min(n, len(chunks))]
	slices.Sort(chunks)
	return chunks
}
