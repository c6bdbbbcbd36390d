// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slowest

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Strip is the arrivals of the chunks of a request that hold tokens.
type Strip struct {
	At       []time.Duration // since the start of the request
	Tokens   []uint32
	Channels []timeline.Channel
	// Stalled has the chunks before which the stream stalled, in their order.
	Stalled []int
	// Dropped is the number of chunks beyond the limit.
	Dropped int

	spoken    []bool // audio arrived in the gap before the chunk
	lastAudio time.Duration
}

// Strip returns the first chunks of a request, up to a limit. It is nil for a request without a timeline, or with a damaged one.
func (r *Entry) Strip(limit int) *Strip {
	walk, err := timeline.Decode(r.Timeline)
	if err != nil {
		return nil
	}
	walk, audio := walk.Split()
	s, speech := &Strip{}, timeline.SpeechIn(audio)
	for audio.Next() {
		s.lastAudio = audio.Offset()
	}
	for walk.Next() {
		if len(s.At) == limit {
			s.Dropped = 1 + walk.Left()
			break
		}
		n := len(s.At)
		s.spoken = append(s.spoken, n > 0 && speech.Between(s.At[n-1], walk.Offset()))
		s.At = append(s.At, walk.Offset())
		s.Tokens = append(s.Tokens, walk.Tokens())
		s.Channels = append(s.Channels, walk.Channel())
	}
	if r.Stalls > 0 {
		s.Stalled = s.stalls(r)
	}
	return s
}

// Gap returns the time before a chunk, 0 before the first.
func (s *Strip) Gap(chunk int) time.Duration {
	if chunk == 0 {
		return 0
	}
	return s.At[chunk] - s.At[chunk-1]
}

// longest returns the longest gap, 0 without one.
func (s *Strip) longest() (gap time.Duration) {
	if s == nil {
		return 0
	}
	for i := range s.At {
		gap = max(gap, s.Gap(i))
	}
	return gap
}

// LongestGaps returns the n chunks after the longest gaps, longest gap first. Of equal gaps, the earlier one is first.
func (s *Strip) LongestGaps(n int) []int {
	chunks := []int{}
	for i := 1; i < len(s.At); i++ {
		chunks = append(chunks, i)
	}
	slices.SortStableFunc(chunks, func(a, b int) int { return cmp.Compare(s.Gap(b), s.Gap(a)) })
	return chunks[:min(n, len(chunks))]
}

// stalls returns the chunks before which the stream stalled. Stalls are the gaps above a threshold, so they are the longest
// ones. The wait at the end of a cancelled request may be one of them, and is before no chunk.
func (s *Strip) stalls(r *Entry) []int {
	chunks := slices.DeleteFunc(s.LongestGaps(len(s.At)), func(i int) bool { return s.spoken[i] })
	n := int(min(r.Stalls, float64(len(chunks)+1)))
	chunks = chunks[:min(n, len(chunks))]
	if n > 0 && n == len(chunks) && r.Outcome == series.Cancelled && s.tail(r) >= s.Gap(chunks[n-1]).Seconds() {
		chunks = chunks[:n-1]
	}
	slices.Sort(chunks)
	return chunks
}

// tail returns the seconds from the last chunk, also of audio, to the end of a request.
func (s *Strip) tail(r *Entry) float64 {
	if s.lastAudio > s.At[len(s.At)-1] {
		return r.Value(numbers.RequestDuration) - s.lastAudio.Seconds()
	}
	return r.tail()
}

// LongestGap returns the longest time between two chunks in seconds, or the tail of a request that may have hung. It is NaN
// if it is unknown. The strip is that of the request, or nil.
func (r *Entry) LongestGap(s *Strip) float64 {
	longest := r.LargestGap
	if gap := s.longest(); gap > 0 {
		longest = gap.Seconds()
	}
	if tail := r.OpenTail(); !math.IsNaN(tail) && !(tail < longest) {
		return tail
	}
	return longest
}
