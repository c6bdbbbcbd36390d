// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/canary"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Limits of a Store.
const (
	// MaxPairs limits the pairs.
	MaxPairs = 64
	// forgetAfter is the time without a question after which a pair that is not configured is dropped.
	forgetAfter = 24 * time.Hour
)

// Store holds the pairs of an exporter. It is safe for concurrent use.
type Store struct {
	dimensions []string
	used       atomic.Bool // there has been a pair

	// mu guards everything declared below.
	mu     sync.Mutex
	pairs  []*evidence // the configured ones first
	folded uint64      // requests whose replica was merged with others
}

// New returns a store with the configured pairs.
func New(dimensions []string, configured []Question) *Store {
	s := &Store{dimensions: dimensions}
	for i := range configured {
		e := newEvidence(configured[i].key(), dimensions)
		e.configured = true
		s.add(e)
	}
	return s
}

// add adds a pair. mu is held, or the store is new.
func (s *Store) add(e *evidence) {
	s.pairs = append(s.pairs, e)
	s.used.Store(true)
}

// Used reports whether there has been a pair.
func (s *Store) Used() bool { return s.used.Load() }

// Record counts a request.
func (s *Store) Record(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.pairs {
		s.folded += e.record(r)
	}
}

// Increase counts the requests of a data point.
func (s *Store) Increase(i *series.Increment) {
	if !s.Used() || i.Overflow {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.pairs {
		s.folded += e.increase(i)
	}
}

// Folded returns the number of requests whose replica was merged with others, because a limit was reached. Each
// pair adds its own.
func (s *Store) Folded() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.folded)
}

// Reply is the answer to a question.
type Reply struct {
	canary.Answer
	// Since is when the evidence begins, zero before the candidate's first request.
	Since time.Time
	// Vantage is the one that counts, empty before the first request.
	Vantage string
}

// Errors of Ask.
var (
	ErrFull = errors.New("64 pairs are compared already")
	ErrPast = errors.New("the evidence begins at another time")
)

// Ask answers a question. A pair begins when it is first asked, unless it is configured. If since is not in the
// past, the evidence begins anew then. Otherwise it must be when the evidence began, or zero.
func (s *Store) Ask(q *Question, since, now time.Time) (Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
	e, err := s.find(q.key(), now)
	if err != nil {
		return Reply{}, err
	}
	e.asked = now
	switch {
	case since.Equal(now):
		e.begin(since)
	case since.IsZero() || since.Truncate(time.Second).Equal(e.since.Truncate(time.Second)):
	case since.Before(now.Add(-travelTime)):
		return Reply{Since: e.since}, ErrPast
	default:
		e.begin(since)
	}
	return e.reply(q, now), nil
}

// travelTime is how long a question may take to arrive, the difference of the clocks included.
const travelTime = 5 * time.Second

// Has reports whether the pair of a question is compared already.
func (s *Store) Has(q *Question) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index(q.key()) >= 0
}

func (s *Store) index(k key) int {
	return slices.IndexFunc(s.pairs, func(e *evidence) bool { return e.key == k })
}

// find returns the evidence of a pair, and begins it if there is none.
func (s *Store) find(k key, now time.Time) (*evidence, error) {
	if i := s.index(k); i >= 0 {
		return s.pairs[i], nil
	}
	if len(s.pairs) >= MaxPairs {
		return nil, ErrFull
	}
	e := newEvidence(k, s.dimensions)
	e.begin(now)
	s.add(e)
	return e, nil
}

// Forget drops the pairs without a question for a day, so that they hold no memory and no entry in the storage.
// Ask drops them, too, but only while questions arrive.
func (s *Store) Forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
}

func (s *Store) forget(now time.Time) {
	s.pairs = slices.DeleteFunc(s.pairs, func(e *evidence) bool { return !e.configured && now.Sub(e.asked) > forgetAfter })
}

func (e *evidence) reply(q *Question, now time.Time) Reply {
	asked := canary.Question{Alpha: q.Alpha, Tolerance: q.Tolerance, ExpectedShare: q.ExpectedShare}
	if e.pair == nil {
		r := Reply{Answer: canary.NewPair(e.settings(), now).Answer(asked)}
		r.Hint = "no request of the candidate has arrived yet"
		return r
	}
	e.pair.Advance(now)
	r := Reply{Answer: e.pair.Answer(asked), Since: e.since, Vantage: e.vantage}
	const both = " in a window that is closed: windows close 2 minutes after their end, and the Collector must receive both arms"
	switch {
	case r.Reason != canary.TooFew:
	case r.Baseline.Requests == 0 && r.Candidate.Requests == 0:
		r.Hint = "neither arm has a request" + both
	case r.Baseline.Requests == 0:
		r.Hint = "the baseline has no request" + both
	case r.Candidate.Requests == 0:
		r.Hint = "the candidate has no request" + both
	}
	return r
}
