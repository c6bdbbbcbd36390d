// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

const repeatsMessage = "two instrumentations send a span each of one model call, so the call counts twice; " +
	"switch one of them off, or put groupbytrace and `join: true` of token_latency in front"

// doubtRepeats raises a doubt if a model call of a batch is directly below one of another instrumentation, with the same
// resource and vantage. It reads only resources with several scopes.
func (k *Keeper) doubtRepeats(traces ptrace.Traces) {
	for _, resource := range traces.ResourceSpans().All() {
		if scopes := resource.ScopeSpans(); scopes.Len() > 1 {
			k.doubtRepeatsIn(scopes)
		}
	}
}

// seenCall is a model call of a batch.
type seenCall struct{ scope, vantage, response string }

// scopePairs are the first pairs of scopes that a doubt named: senders choose the names.
type scopePairs struct {
	mu    sync.Mutex
	named map[string]bool
}

const maxScopePairs = 8

// name returns a pair of scopes, or a general name for those beyond maxScopePairs.
func (s *scopePairs) name(outer, inner string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	pair := series.CleanLabel(outer) + ", " + series.CleanLabel(inner)
	if !s.named[pair] && len(s.named) >= maxScopePairs {
		return "other scopes"
	}
	if s.named == nil {
		s.named = map[string]bool{}
	}
	s.named[pair] = true
	return pair
}

func (k *Keeper) doubtRepeatsIn(scopes ptrace.ScopeSpansSlice) {
	calls := map[pcommon.SpanID]seenCall{}
	visit := func(do func(scope string, span ptrace.Span)) {
		for _, scope := range scopes.All() {
			for _, span := range scope.Spans().All() {
				if source.IsAnnotated(span) && !source.IsRepeated(span) {
					do(scope.Scope().Name(), span)
				}
			}
		}
	}
	visit(func(scope string, span ptrace.Span) {
		calls[span.SpanID()] = callOf(scope, span)
	})
	visit(func(scope string, span ptrace.Span) {
		above, ok := calls[span.ParentSpanID()]
		call := callOf(scope, span)
		if !ok || above.scope == scope || above.vantage != call.vantage || above.response != "" && call.response != "" && above.response != call.response {
			return
		}
		k.doubts.Raise(repeatsMessage, k.pairs.name(above.scope, scope), zap.String("scope_above", above.scope), zap.String("scope", scope))
	})
}

func callOf(scope string, span ptrace.Span) seenCall {
	return seenCall{scope, source.Text(span.Attributes(), names.Vantage), source.Text(span.Attributes(), names.GenAIResponseID)}
}
