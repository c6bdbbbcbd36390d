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
	// idleAfter is the time without a request of one arm after which a pair that is not configured ends.
	idleAfter = 24 * time.Hour
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

// Errors of a Store.
var (
	ErrFull    = errors.New("64 pairs are compared already")
	ErrUnknown = errors.New("the pair is not compared")
)

// Begin begins the pair of a question, unless it has begun, and answers the question.
func (s *Store) Begin(q *Question, now time.Time) (reply Reply, begun bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endIdle(now)
	e := s.find(q.key())
	switch {
	case e == nil && len(s.pairs) >= MaxPairs:
		return Reply{}, false, ErrFull
	case e == nil:
		e = newEvidence(q.key(), s.dimensions)
		s.add(e)
	}
	if e.pair == nil {
		e.begin(now)
		begun = true
	}
	return e.reply(q, now), begun, nil
}

// Ask answers a question from the evidence so far.
func (s *Store) Ask(q *Question, now time.Time) (Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(q.key())
	if e == nil {
		return Reply{}, ErrUnknown
	}
	return e.reply(q, now), nil
}

// End ends the pair of a question. A configured pair begins anew with the candidate's next request.
func (s *Store) End(q *Question) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(q.key())
	switch {
	case e == nil:
		return ErrUnknown
	case e.configured:
		e.reset()
	default:
		s.pairs = slices.DeleteFunc(s.pairs, func(other *evidence) bool { return other == e })
	}
	return nil
}

// Pairs returns the pairs that are compared, the configured ones first.
func (s *Store) Pairs() []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Key, len(s.pairs))
	for i, e := range s.pairs {
		all[i] = e.Key
	}
	return all
}

// Has reports whether the pair of a question is compared already.
func (s *Store) Has(q *Question) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(q.key()) != nil
}

// find returns the evidence of a pair, or nil.
func (s *Store) find(k Key) *evidence {
	if i := slices.IndexFunc(s.pairs, func(e *evidence) bool { return e.Key == k }); i >= 0 {
		return s.pairs[i]
	}
	return nil
}

// EndIdle ends the pairs that can learn nothing more, so that they hold no memory and no entry in the storage: one of
// their arms had no request for a day. Configured ones stay.
func (s *Store) EndIdle(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endIdle(now)
}

func (s *Store) endIdle(now time.Time) {
	s.pairs = slices.DeleteFunc(s.pairs, func(e *evidence) bool { return !e.configured && e.idleSince().Before(now.Add(-idleAfter)) })
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
