// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import "github.com/tokenpulse/tokenpulse/internal/names"

// spanEvents reads model calls that follow the OpenTelemetry conventions and mark tokens, frames or
// the first token with span events.
var spanEvents = reader{
	name:      names.SourceSpanEvents,
	vantageOf: conventionsVantage,
	signs:     []*sign{modelCall},
	claims: func(c candidate) bool {
		return !c.has(langSmithKind) && (c.hasEvent(tokenEvents) || c.hasEvent(otherFrames) || c.hasEvent(firstTokens))
	},
	attribute: readConventions,

	silentIsWhole: reportsStreaming,
}
