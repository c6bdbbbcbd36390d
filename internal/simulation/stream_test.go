// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// profile is what a seed decides about the whole run.
type profile struct {
	maxStreams        int
	maxShare          float64 // of one client
	idle, firstToken  time.Duration
	maxLive           int
	bulky             bool // streams have attributes of 16 KB, so that max_memory_mib is reached
	maxSeries, models int
	expiration        time.Duration // of series
	maxSpans          int           // of deduplication
	storage           bool
	durable           bool // the receiver has a storage, whose disk never fails
	settle            bool // outages end only after all retries with a random delay
}

func newProfile(r *rand.Rand) profile {
	p := profile{
		maxStreams: pick(r, 6, 20, 1000), idle: pick(r, 10*time.Second, time.Minute),
		maxLive: pick(r, 1, 3, 100), bulky: r.IntN(6) == 0,
		maxSeries: pick(r, 3, 100, 100), models: pick(r, 2, 4), expiration: pick(r, 0, time.Hour, 90*time.Second),
		maxSpans: pick(r, 1_000_000, 1_000_000, 1_000_000, 8), settle: r.IntN(4) > 0,
	}
	p.firstToken = p.idle * time.Duration(pick(r, 1, 5))
	p.maxShare = pick(r, 0.25, 1)
	if p.maxLive == 3 {
		p.maxShare = 1 // the share of a client in live bodies is not modelled
	}
	// With few series, which of the saved ones are restored depends on the order of the keys.
	p.storage = p.maxSeries == 100 && r.IntN(4) > 0
	// What a restart restores near the limit of memory is not modelled.
	p.durable = !p.bulky && chance(r, 50)
	return p
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// chance reports true in a percentage of the calls.
func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// stream is one request to an LLM service, as its sender sees it. Its events are numbered: 0 is
// the start, then come the chunks, and the last one is the end.
type stream struct {
	id             string
	service, model string
	vantage        string
	traceID        [16]byte // zero if the sender has none
	spanID         [8]byte
	start          int64 // Unix time in nanoseconds, like all times
	chunks         []chunk
	end            int64
	outcome        string
	usage          bool // the end reports the tokens
	padding        int  // bytes of an attribute
	usual          bool // it is sent whole, and in protobuf in the form that skips the store
}

type chunk struct {
	at     int64
	tokens int
}

const inputTokens = 17

func (s *stream) events() int { return len(s.chunks) + 2 }

func newStream(r *rand.Rand, p *profile, id string, now time.Time) *stream {
	s := &stream{
		id: id, service: pick(r, "chat", "search"), model: fmt.Sprintf("model-%d", r.IntN(p.models)), vantage: "server",
		start:   now.UnixNano() / 1000 * 1000,
		outcome: pick(r, "success", "success", "success", "success", "error", "cancelled"),
		usage:   chance(r, 50),
	}
	if p.bulky {
		s.padding = 16 << 10
	}
	if chance(r, 50) {
		for i := range s.traceID {
			s.traceID[i] = byte(r.Uint32()) | 1
		}
		for i := range s.spanID {
			s.spanID[i] = byte(r.Uint32()) | 1
		}
	}
	chunks := 1 + r.IntN(8)
	if s.outcome != "success" && chance(r, 20) {
		chunks = 0
	}
	at := s.start + micros(r, 50_000, 1_500_000)
	for range chunks {
		s.chunks = append(s.chunks, chunk{at, 1 + r.IntN(4)})
		at += micros(r, 5_000, 200_000)
	}
	s.end = at + micros(r, 0, 900_000)
	return s
}

// makeUsual gives the stream chunks of one token each, without sequence numbers.
func (s *stream) makeUsual() {
	s.usual = true
	for i := range s.chunks {
		s.chunks[i].tokens = 1
	}
}

// twin returns the same request as another observer sees it, with the same trace and span ID.
func (s *stream) twin() *stream {
	t := *s
	t.id += "-client"
	t.vantage = "client"
	return &t
}

// micros returns a time in nanoseconds between two numbers of microseconds. Timelines have a
// resolution of one.
func micros(r *rand.Rand, from, to int) int64 { return int64(from+r.IntN(to-from)) * 1000 }
