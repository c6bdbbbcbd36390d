package source

import (
	"math/bits"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// reader reads the spans of one instrumentation. The zero value of a hook means
// that there is nothing to do beyond what holds for all.
type reader struct {
	// name is the value of the attribute names.Source.
	name string
	// vantage is who looks at the clock, unless the span says otherwise.
	vantage string
	// vantageOf replaces vantage where it differs from span to span.
	vantageOf func(span ptrace.Span) string
	// signs are attributes that hint at this instrumentation. A span with none of
	// them is not looked at any further.
	signs []*sign
	// claims tells the instrumentation's model calls from all other spans with one
	// of its signs. Without it, a sign is proof.
	claims func(c candidate) bool
	// firstChunkIsFrame tells that the first chunk this instrumentation speaks of
	// may be a frame without a token, such as the one that tells the role.
	firstChunkIsFrame bool
	// streamingIsSaid tells that a call which does not say that it streams does not.
	streamingIsSaid bool
	// attribute takes what is particular to the instrumentation.
	attribute func(o *Observation, key string, v pcommon.Value)
	// event takes an event that has no meaning for all instrumentations alike.
	event func(o *Observation, span ptrace.Span, event ptrace.SpanEvent)
}

// sign is an attribute that hints at an instrumentation.
type sign struct {
	key string
	// holds tells whether a value counts. Without it, every value does.
	holds func(v pcommon.Value) bool
}

// candidate is a span with a sign.
type candidate struct {
	scope string
	span  ptrace.Span
}

// has reports whether the span has any of the attributes.
func (c candidate) has(keys ...string) bool {
	for _, key := range keys {
		if _, ok := c.span.Attributes().Get(key); ok {
			return true
		}
	}
	return false
}

// text returns an attribute of the span that is text.
func (c candidate) text(key string) string {
	if v, ok := c.span.Attributes().Get(key); ok {
		return v.Str()
	}
	return ""
}

// hasEvent reports whether the span has an event of one of the names.
func (c candidate) hasEvent(events []string) bool {
	for _, event := range c.span.Events().All() {
		if slices.Contains(events, event.Name()) {
			return true
		}
	}
	return false
}

// isModelCall reports whether the span says so in the conventions' words.
func (c candidate) isModelCall() bool {
	v, ok := c.span.Attributes().Get(names.GenAIOperationName)
	return ok && modelCall.holds(v)
}

// modelCall is the sign of a model call in the conventions' words. Agents, tools
// and embeddings have other operations.
var modelCall = &sign{names.GenAIOperationName, oneOf("chat", "text_completion", "generate_content")}

// oneOf holds for a string that is one of the values.
func oneOf(values ...string) func(pcommon.Value) bool {
	return func(v pcommon.Value) bool { return slices.Contains(values, v.Str()) }
}

// hint is a sign, and a bit for each reader that has it.
type hint struct {
	*sign
	readers uint64
}

// hints holds every sign of every reader by its attribute.
var hints = func() *table[[]hint] {
	byKey := map[string][]hint{}
	for i, r := range readers {
		for _, s := range r.signs {
			same := slices.IndexFunc(byKey[s.key], func(h hint) bool { return h.sign == s })
			if same < 0 {
				same = len(byKey[s.key])
				byKey[s.key] = append(byKey[s.key], hint{sign: s})
			}
			byKey[s.key][same].readers |= 1 << i
		}
	}
	return newTable(byKey)
}()

// noReader is the index of none.
const noReader = -1

// match returns the index of the first reader that claims the span. It is called
// for every span that passes, so it is quick and does not allocate.
func match(scope string, span ptrace.Span) int {
	seen := signsOf(span)
	c := candidate{scope, span}
	for ; seen != 0; seen &= seen - 1 {
		i := bits.TrailingZeros64(seen)
		if r := &readers[i]; r.claims == nil || r.claims(c) {
			return i
		}
	}
	return noReader
}

// signsOf returns a bit for each reader that the span has a sign of.
func signsOf(span ptrace.Span) (seen uint64) {
	for key, v := range span.Attributes().All() {
		found := hints.get(key)
		if found == nil {
			continue
		}
		for _, h := range *found {
			if h.holds == nil || h.holds(v) {
				seen |= h.readers
			}
		}
	}
	return seen
}
