// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/repeats"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

const repeatsMessage = "two instrumentations send a span each of one model call, so the call counts twice; " +
	"switch one of them off, or put groupbytrace and `join: true` of token_latency in front"

// doubtRepeats raises a doubt about each pair of scopes that sent one call, both of which count.
func (k *Keeper) doubtRepeats(traces ptrace.Traces) {
	if !k.pairs.mayInspect(k.settings.Now().Unix()) {
		return
	}
	calls := repeats.CallsOf(traces)
	if calls == nil {
		return
	}
	k.pairs.inspected(traces.SpanCount())
	for _, r := range repeats.Find(calls) {
		one, other := calls[r.Call].Scope, calls[r.Counts].Scope
		one, other = min(one, other), max(one, other)
		k.doubts.Raise(repeatsMessage, k.pairs.name(one, other), zap.String("scope", one), zap.String("other_scope", other))
	}
}

// scopePairs holds the first pairs of scopes that a doubt named, since senders choose the names, and bounds what it costs
// to find them.
type scopePairs struct {
	// mu guards everything declared below.
	mu     sync.Mutex
	named  map[string]bool
	second int64
	spans  int // inspected in this second
}

const (
	maxScopePairs = 8
	// maxInspected is the number of spans in batches with several scopes after which no further batch of a second is
	// inspected.
	maxInspected = 1000
)

func (s *scopePairs) mayInspect(second int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if second != s.second {
		s.second, s.spans = second, 0
	}
	return s.spans < maxInspected
}

func (s *scopePairs) inspected(spans int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans += spans
}

// name returns a pair of scopes, or a general name for those beyond maxScopePairs.
func (s *scopePairs) name(one, other string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	pair := series.CleanLabel(one) + ", " + series.CleanLabel(other)
	if !s.named[pair] && len(s.named) >= maxScopePairs {
		return "other scopes"
	}
	if s.named == nil {
		s.named = map[string]bool{}
	}
	s.named[pair] = true
	return pair
}
