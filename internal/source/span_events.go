package source

import "github.com/tokenpulse/tokenpulse/internal/names"

// spanEvents reads model calls in the conventions' words on which somebody marks
// frames, or the first token, with events.
var spanEvents = reader{
	name:      names.SourceSpanEvents,
	vantageOf: conventionsVantage,
	signs:     []*sign{modelCall},
	claims: func(c candidate) bool {
		return !c.has(langSmithKind) && (c.hasEvent(otherFrames) || c.hasEvent(firstTokens))
	},
	attribute: readConventions,
}
