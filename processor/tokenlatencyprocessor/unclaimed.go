// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"context"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Scope names come from senders. Beyond the limit, all further ones share a value.
const (
	maxScopes     = 100
	overflowScope = "_overflow"
)

// unclaimed counts spans that look like model calls and that no reader claims, by scope name.
type unclaimed struct {
	counter metric.Int64Counter

	// mu guards scopes.
	mu     sync.Mutex
	scopes map[string]metric.AddOption
}

func (u *unclaimed) add(ctx context.Context, scope string, n int64) {
	if n > 0 {
		u.counter.Add(ctx, n, u.option(names.CleanLabel(scope)))
	}
}

func (u *unclaimed) option(scope string) metric.AddOption {
	u.mu.Lock()
	defer u.mu.Unlock()
	if option := u.scopes[scope]; option != nil {
		return option
	}
	if len(u.scopes) >= maxScopes {
		return withOverflowScope
	}
	if u.scopes == nil {
		u.scopes = map[string]metric.AddOption{}
	}
	scope = strings.Clone(scope) // it refers to the memory of the batch
	option := diagnostics.Label("scope", scope)
	u.scopes[scope] = option
	return option
}

var withOverflowScope = diagnostics.Label("scope", overflowScope)
