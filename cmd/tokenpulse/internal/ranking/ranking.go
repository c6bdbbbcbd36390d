// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package ranking finds the slowest requests of files.
package ranking

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/request"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

// MaxRequests is the largest number of requests that a Ranking holds.
const MaxRequests = 1000

// Ranking holds the slowest requests by a quantity. The zero value is not ready: see New.
type Ranking struct {
	// By is one of slowest.Quantities.
	By numbers.ID
	// Requests counts all, Matched those that meet the conditions, and Unmeasured those of them without the quantity.
	Requests, Matched, Unmeasured int64
	// Partial means that reading ended before the end of the files.
	Partial bool

	where []Condition
	board *slowest.Board
	held  map[*slowest.Entry]*request.Request
}

// New returns an empty ranking of up to limit requests, 1 to MaxRequests, that meet all conditions.
func New(by numbers.ID, limit int, where []Condition) *Ranking {
	return &Ranking{By: by, where: where, board: slowest.NewBoard(by, limit), held: map[*slowest.Entry]*request.Request{}}
}

// Watch takes a request in if it is among the slowest. It is a Watch of package pipeline.
func (r *Ranking) Watch(c *series.Contribution, span ptrace.Span, resource pcommon.Map) {
	if c.TraceOnly {
		return
	}
	r.Requests++
	if !r.selects(span.Attributes(), resource) {
		return
	}
	r.Matched++
	if _, ok := c.Value(r.By); !ok {
		r.Unmeasured++
	}
	if !r.board.Accepts(c) {
		return
	}
	found := request.New(c, span, resource)
	found.Chunks = nil // for there may be many
	r.held[found.Entry] = found
	if displaced := r.board.Add(found.Entry); displaced != nil {
		delete(r.held, displaced)
	}
}

// selects reports whether a request meets all conditions.
func (r *Ranking) selects(span, resource pcommon.Map) bool {
	all := true
	for i := range r.where {
		all = r.where[i].holds(span, resource) && all // each looks whether there is its attribute
	}
	return all
}

// Slowest returns the requests, slowest first.
func (r *Ranking) Slowest() (all []*request.Request) {
	for _, entry := range r.board.Slowest() {
		all = append(all, r.held[entry])
	}
	return all
}

// UnknownAttributes returns the attributes of conditions that no request has.
func (r *Ranking) UnknownAttributes() (unknown []string) {
	for i := range r.where {
		if !r.where[i].known {
			unknown = append(unknown, r.where[i].attribute)
		}
	}
	return unknown
}
