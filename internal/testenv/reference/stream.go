// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package reference computes the numbers of docs/definitions.md for tests. It is slow and
// obvious: it keeps every chunk, makes every gap a sample, and visits every token. It shares
// the keys of attributes with the components, and nothing that computes.
package reference

import (
	"cmp"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Names of channels, as senders write them.
const (
	Content   = "content"
	Reasoning = "reasoning"
	ToolCall  = "tool_call"
)

// Chunk is one chunk as its sender reports it.
type Chunk struct {
	At       int64 // Unix nanoseconds
	Tokens   int64
	Channel  string
	Sequence uint64
	Numbered bool // the chunk has a sequence number
}

// Usage holds the numbers of tokens that the sender reports. A negative number is not
// reported.
type Usage struct{ Input, Output, Reasoning, CachedInput, CacheWrite int64 }

// NoUsage is the usage of a stream whose sender reports none.
var NoUsage = Usage{-1, -1, -1, -1, -1}

// Stream is one stream as its sender reports it. A time of zero is not reported.
type Stream struct {
	Start, Scheduled, End int64   // Unix nanoseconds
	Chunks                []Chunk // in the order in which they are sent
	Usage                 Usage
	Failure               string // the error of the end event
	Cancelled             bool
	NoEnd                 bool
}

// Arrivals returns the chunks with tokens in order, without repeats: by sequence number if
// all have one, else by time.
func (s *Stream) Arrivals() []Chunk {
	var chunks []Chunk
	all, seen := true, map[uint64]bool{}
	for _, c := range s.Chunks {
		if c.Tokens == 0 || c.Numbered && seen[c.Sequence] {
			continue
		}
		all = all && c.Numbered
		if c.Numbered {
			seen[c.Sequence] = true
		}
		chunks = append(chunks, c)
	}
	slices.SortStableFunc(chunks, func(a, b Chunk) int {
		if all {
			return cmp.Compare(a.Sequence, b.Sequence)
		}
		return cmp.Compare(a.At, b.At)
	})
	return chunks
}

// LastTime returns the reported end, or else the last reported time of the stream.
func (s *Stream) LastTime() int64 {
	if s.End != 0 && !s.NoEnd {
		return s.End
	}
	last := max(s.Start, s.Scheduled)
	for _, c := range s.Arrivals() {
		last = max(last, c.At)
	}
	return last
}

// Outcome returns the outcome of the stream.
func (s *Stream) Outcome() string {
	switch {
	case s.NoEnd:
		return names.OutcomeIncomplete
	case s.Failure != "":
		return names.OutcomeError
	case s.Cancelled:
		return names.OutcomeCancelled
	case len(s.Arrivals()) == 0 && s.Usage.Output <= 0:
		return names.OutcomeError
	default:
		return names.OutcomeSuccess
	}
}

// countedTokens returns the sum of the tokens of all chunks.
func countedTokens(chunks []Chunk) (sum int64) {
	for _, c := range chunks {
		sum += c.Tokens
	}
	return sum
}

// stepsBack counts how often the clock steps back between start and end.
func stepsBack(start int64, chunks []Chunk, end int64) (back int) {
	last := start
	for _, c := range chunks {
		if c.At < last {
			back++
		}
		last = c.At
	}
	if end < last {
		back++
	}
	return back
}
