// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/repeats"
)

// doubtRepeats reports each pair of scopes that sent one call, both of which count.
func (k *Keeper) doubtRepeats(traces ptrace.Traces) {
	if !k.inspection.allows(k.settings.Now().Unix()) {
		return
	}
	calls := repeats.CallsOf(traces)
	if calls == nil {
		return
	}
	k.inspection.add(traces.SpanCount())
	for _, r := range repeats.Find(calls) {
		one, other := calls[r.Call].Scope, calls[r.Counts].Scope
		one, other = min(one, other), max(one, other)
		pair := names.CleanLabel(one) + ", " + names.CleanLabel(other)
		k.doubts.Report(diagnostics.CallRepeated, diagnostics.Facts{Cases: 1}, pair, zap.String("scope", one), zap.String("other_scope", other))
	}
}

// inspection bounds what it costs to find repeats.
type inspection struct {
	// mu guards everything declared below.
	mu     sync.Mutex
	second int64
	spans  int // inspected in this second
}

// maxInspected is the number of spans in batches with several scopes after which no further batch of a second is
// inspected.
const maxInspected = 1000

func (i *inspection) allows(second int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if second != i.second {
		i.second, i.spans = second, 0
	}
	return i.spans < maxInspected
}

func (i *inspection) add(spans int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.spans += spans
}
