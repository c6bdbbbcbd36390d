// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"math"
	"sync"

	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Shares divides what all clients of a server share. While at least half of it is free, a client may hold
// any part. When less is free, each client may hold its share. It is safe for concurrent use.
type Shares struct {
	limit, perClient int

	mu sync.Mutex
	// mu guards everything declared below.
	held    int
	clients map[Client]int // those that hold something
}

// Refusal is why a client gets nothing.
type Refusal uint8

// The refusals.
const (
	// Accepted is no refusal.
	Accepted Refusal = iota
	// Full means that nothing is free.
	Full
	// ShareFull means that less than half is free, and that the client holds its share.
	ShareFull
)

// DefaultShare is the default of `max_share_per_client`.
const DefaultShare = 0.1

// ShareOf returns what one client may hold of a limit, at least 1. share is between 0 and 1.
func ShareOf(limit int, share float64) int {
	return max(1, int(math.Round(float64(limit)*share)))
}

// ShareProblems returns what is wrong with the value of `max_share_per_client`.
func ShareProblems(share float64) (errs settings.Problems) {
	errs.Unless(share > 0 && share <= 1, "`max_share_per_client` is %v; use a fraction above 0, such as 0.1, or 1 to let one client hold all", share)
	return errs
}

// NewShares returns shares of a limit, of which one client may hold the fraction share.
func NewShares(limit int, share float64) *Shares {
	return &Shares{limit: limit, perClient: ShareOf(limit, share), clients: map[Client]int{}}
}

// Limit returns the limit.
func (s *Shares) Limit() int64 { return int64(s.limit) }

// Held returns how much all clients hold.
func (s *Shares) Held() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.held)
}

// Take takes one for a client, until Give.
func (s *Shares) Take(client Client) Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.held >= s.limit:
		return Full
	case 2*(s.limit-s.held) < s.limit && s.clients[client] >= s.perClient:
		return ShareFull
	}
	s.held++
	s.clients[client]++
	return Accepted
}

// Give gives back one that a client took.
func (s *Shares) Give(client Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	if s.clients[client]--; s.clients[client] == 0 {
		delete(s.clients, client)
	}
}
