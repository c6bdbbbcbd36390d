// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

const microsecond = 1000 // in nanoseconds

// plainStream is a stream with the ID and the vantage that its sender reports.
type plainStream struct {
	reference.Stream
	id, vantage string
}

// edgesOfGaps are gaps in microseconds on both sides of an edge: where the packed
// encoding needs one more byte, and at the stall thresholds.
var edgesOfGaps = []int64{
	63, 64, 127, 128, 8191, 8192, 16_383, 16_384, 1<<20 - 1, 1 << 20, 1<<21 - 1, 1 << 21,
	99_999, 100_000, 100_001, 499_999, 500_000, 500_001,
}

// randomGap returns a gap of one of gapKinds kinds, in microseconds.
func randomGap(random *rand.Rand, kind int) int64 {
	between := func(low, high int64) int64 { return low + random.Int64N(high-low) }
	switch kind {
	case 0:
		return between(1, 128)
	case 1:
		return between(128, 16_384)
	case 2:
		return between(16_384, 100_000)
	case 3:
		return between(256_000, 499_000) // no stalls, though their bitwise OR would be one
	case 4:
		return between(500_002, 2_100_000)
	case 5:
		return between(2_100_000, 4*60_000_000)
	case 6:
		return 0
	default:
		return edgesOfGaps[random.IntN(len(edgesOfGaps))]
	}
}

const (
	gapKinds  = 8
	longGap   = 5
	commonGap = 3 // most streams have only kinds below it
)

// randomLength returns mostly short lengths, so that a failing stream is short too.
// Some are about as long as the runs in which chunks are read.
func randomLength(random *rand.Rand) int {
	switch random.IntN(12) {
	case 0:
		return 0
	case 1:
		return 1
	case 2, 3, 4:
		return 2 + random.IntN(3)
	case 5, 6, 7:
		return 6 + random.IntN(30)
	case 8, 9:
		return 126 + random.IntN(6)
	default:
		return 130 + random.IntN(300)
	}
}

// Orders of a stream's chunks.
const (
	inOrder        = iota
	shuffledByTime // without seq: ordered by time
	inOrderBySeq   // in order, some numbers are missing
	shuffledBySeq  // with seq, shuffled, with repeats
	clockGoesBack  // with seq, which takes precedence over times
	partlyNumbered // only some have a seq: ordered by time
	ordersOfChunks
)

func randomStream(random *rand.Rand, index int) *plainStream {
	const epoch = 1_795_233_292_000_000_000
	chance := func(oneIn int) bool { return random.IntN(oneIn) == 0 }
	s := &plainStream{id: strconv.Itoa(index), vantage: []string{"", "client", "gateway", "server", "engine"}[random.IntN(5)]}
	s.Start = epoch + random.Int64N(int64(time.Hour))
	s.Usage = reference.NoUsage
	order := inOrder
	if chance(2) {
		order = random.IntN(ordersOfChunks)
	}
	if chance(2) {
		s.Start -= s.Start % microsecond
	}
	// Clocks count microseconds or nanoseconds. Some streams are on a grid of
	// microseconds with an offset of nanoseconds.
	grid, at := random.IntN(4), s.Start
	whole := grid < 2
	switch {
	case whole:
		at += (microsecond - at%microsecond) % microsecond
	case chance(2):
		at += random.Int64N(microsecond)
	}
	if !chance(5) {
		at += microsecond * randomGap(random, random.IntN(5))
	}
	s.addChunks(random, at, order, grid)
	s.reorder(random, order, whole)
	s.addMilestones(random, whole)
	s.addEnd(random)
	return s
}

// addChunks adds chunks in order. The first one arrives at the given time.
func (s *plainStream) addChunks(random *rand.Rand, at int64, order, grid int) {
	chance := func(oneIn int) bool { return random.IntN(oneIn) == 0 }
	kind, steady := random.IntN(commonGap), chance(2)
	single, changes := chance(2), random.IntN(150) // chunks before that index hold one token
	zeros := chance(4)
	channels := []string{"content", "reasoning", "tool_call"}
	channel, changing := channels[random.IntN(3)], random.IntN(3)
	if chance(2) {
		channel, changing = "content", 0
	}
	seq, long := uint64(random.IntN(3)), 0
	length := randomLength(random)
	if at == s.Start && chance(2) {
		length = 2 // the only gap is as long as the stream
	}
	for i := range length {
		if i > 0 {
			if !steady {
				if kind = random.IntN(gapKinds); kind == longGap {
					long++
				}
				if long > 3 {
					kind = 0
				}
			}
			gap := microsecond * randomGap(random, kind)
			if gap == 0 && (order == shuffledByTime || order == partlyNumbered) { // chunks need different times
				gap = microsecond
			}
			if grid >= 2 && gap > 0 { // truncation is small compared with the gap
				gap += 5 * microsecond
			}
			if grid == 3 && gap > 0 {
				gap += random.Int64N(microsecond)
			}
			at += gap
		}
		switch {
		case changing == 1 && i == 5, changing == 2 && chance(10):
			channel = channels[random.IntN(3)]
		}
		c := reference.Chunk{At: at, Tokens: 1, Channel: channel, Sequence: seq}
		if !single && i >= changes && chance(3) {
			c.Tokens = 2 + random.Int64N(48)
		}
		if !single && i == 0 && chance(4) { // a bundled first chunk
			c.Tokens = 1 + random.Int64N(10)
		}
		if zeros && chance(5) {
			c.Tokens = 0
		}
		seq++
		if order != inOrder && chance(20) {
			seq += uint64(random.IntN(5))
		}
		s.Chunks = append(s.Chunks, c)
	}
	if zeros { // a finish frame
		s.Chunks = append(s.Chunks, reference.Chunk{At: at + random.Int64N(int64(time.Second)), Channel: channel, Sequence: seq})
	}
}

// reorder sets which chunks have sequence numbers, and the order in which chunks are
// sent.
func (s *plainStream) reorder(random *rand.Rand, order int, whole bool) {
	chunks := s.Chunks
	for i := range chunks {
		chunks[i].Numbered = order >= inOrderBySeq && (order != partlyNumbered || random.IntN(2) == 0)
	}
	if order == clockGoesBack && whole && len(chunks) > 1 {
		for range 1 + random.IntN(3) {
			from := 1 + random.IntN(len(chunks)-1)
			to := from + 1 + random.IntN(len(chunks)-from)
			back := microsecond * (1 + random.Int64N(200_000))
			for i := from; i < to; i++ {
				chunks[i].At -= back
			}
		}
	}
	if order == shuffledBySeq || order == partlyNumbered {
		for range random.IntN(4) {
			if len(chunks) == 0 {
				break
			}
			repeated := chunks[random.IntN(len(chunks))]
			if repeated.Numbered {
				chunks = slices.Insert(chunks, random.IntN(len(chunks)+1), repeated)
			}
		}
	}
	if order == shuffledByTime || order == shuffledBySeq || order == partlyNumbered {
		reach := len(chunks)
		if random.IntN(2) == 0 {
			reach = min(3, reach) // swap neighbours only
		}
		for i := range chunks {
			j := min(i+random.IntN(max(1, reach)), len(chunks)-1)
			chunks[i], chunks[j] = chunks[j], chunks[i]
		}
	}
	s.Chunks = chunks
}

// addMilestones sets the scheduling time and the end, and moves the start. Streams with
// whole microseconds may get implausible times.
func (s *plainStream) addMilestones(random *rand.Rand, whole bool) {
	some := func() int64 { return random.Int64N(int64(2 * time.Second)) }
	first, last := s.Start, s.Start
	if arrivals := s.Arrivals(); len(arrivals) > 0 {
		first = arrivals[0].At
		for _, c := range arrivals {
			last = max(last, c.At)
		}
	}
	switch random.IntN(6) {
	case 0, 1:
		s.Scheduled = s.Start + random.Int64N(max(1, first-s.Start))
	case 2:
		s.Scheduled = s.Start
	case 3:
		s.Scheduled = s.Start + some() - int64(100*time.Millisecond) // may be before the start, or after the first chunk
	}
	if random.IntN(4) != 0 {
		s.End = last
		if random.IntN(2) == 0 {
			s.End += some()
		}
	}
	if !whole {
		return
	}
	switch random.IntN(12) {
	case 0: // some chunks before the start
		s.Start = first + microsecond*random.Int64N(1+2*(last-first)/microsecond)
	case 1: // some chunks after the end
		s.End = first + microsecond*random.Int64N(1+(last-first)/microsecond)
	case 2:
		s.End = s.Start - some()
	}
}

func (s *plainStream) addEnd(random *rand.Rand) {
	if random.IntN(3) != 0 {
		arrivals := s.Arrivals()
		for _, c := range arrivals {
			s.Usage.Output = max(0, s.Usage.Output) + c.Tokens
		}
		switch random.IntN(5) {
		case 0:
			s.Usage.Output = random.Int64N(600)
		case 1:
			s.Usage.Output = random.Int64N(3)
		case 2:
			if len(arrivals) > 0 { // the reported count equals that of the first chunk
				s.Usage.Output = arrivals[0].Tokens
			}
		}
	}
	if random.IntN(2) == 0 {
		s.Usage.Input, s.Usage.Reasoning = random.Int64N(5000), random.Int64N(100)
	}
	if random.IntN(3) == 0 {
		s.Usage.CachedInput, s.Usage.CacheWrite = random.Int64N(1000), random.Int64N(500)
	}
	switch random.IntN(10) {
	case 0:
		s.Failure = "out of memory"
	case 1:
		s.Cancelled = true
	case 2:
		s.NoEnd, s.Usage = true, reference.NoUsage
	}
}
