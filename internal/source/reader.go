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
	// lengths has a bit for the length of each key of the span's attributes.
	lengths uint64
}

// get returns an attribute of the span. Most that are asked for are not there, and
// the lengths mostly tell that without a search.
func (c candidate) get(key string) (pcommon.Value, bool) {
	if c.lengths>>(len(key)%64)&1 == 0 {
		return pcommon.Value{}, false
	}
	return c.span.Attributes().Get(key)
}

// has reports whether the span has any of the attributes.
func (c candidate) has(keys ...string) bool {
	for _, key := range keys {
		if _, ok := c.get(key); ok {
			return true
		}
	}
	return false
}

// text returns an attribute of the span that is text.
func (c candidate) text(key string) string {
	if v, ok := c.get(key); ok {
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
	v, ok := c.get(names.GenAIOperationName)
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

// match returns the index of the first reader that claims a span, of those that it
// has a sign of.
func match(c candidate, seen uint64) int {
	for ; seen != 0; seen &= seen - 1 {
		i := bits.TrailingZeros64(seen)
		if r := &readers[i]; r.claims == nil || r.claims(c) {
			return i
		}
	}
	return noReader
}

// look returns a span as a candidate, and a bit for each reader that it has a sign
// of. It is called for every span that passes, so it is quick and does not allocate.
func look(scope string, span ptrace.Span) (c candidate, seen uint64) {
	var lengths uint64
	for key, v := range span.Attributes().All() {
		lengths |= 1 << (len(key) % 64)
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
	return candidate{scope, span, lengths}, seen
}
