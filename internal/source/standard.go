package source

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Told is what a span says of a standard attribute, under the attribute's own
// name or under another.
type Told struct {
	// Text, Tokens or Duration holds it, whichever the attribute is.
	Text     string
	Tokens   int64
	Duration time.Duration
	Known    bool
	// Rank is 0 for the attribute's own name, and higher for less trusted aliases.
	Rank uint8
}

func (t Told) number() latency.Optional[int64] {
	return latency.Optional[int64]{Value: t.Tokens, Known: t.Known}
}

// alias is a name of a standard attribute.
type alias struct {
	standard names.Standard
	rank     uint8
	unit     time.Duration
}

var aliases = func() *table[alias] {
	all := map[string]alias{}
	for standard, list := range names.Aliases {
		for rank, name := range list {
			unit := time.Second
			if names.InMilliseconds[name] {
				unit = time.Millisecond
			}
			all[name] = alias{names.Standard(standard), uint8(rank), unit}
		}
	}
	return newTable(all)
}()

// The ranks of what is no alias: what only one reader takes for a standard
// attribute, and a time to the first chunk that comes of two absolute times.
const (
	readersRank  = math.MaxUint8 - 1
	absoluteRank = math.MaxUint8
)

// takeStandard takes an attribute that has a standard name or an alias of one.
func (o *Observation) takeStandard(key string, v pcommon.Value) {
	a := aliases.get(key)
	if a == nil {
		return
	}
	switch a.standard {
	case names.Streaming:
		if said := truth(v); said != unsaid {
			o.streaming = said
		}
	case names.FinishReasons:
		o.takeFinishReasons(v)
	case names.ErrorKind:
		if isCancellation(v.Str()) {
			o.Request.Outcome = names.OutcomeCancelled
		}
	case names.TimeToFirstChunk:
		o.tellFirstChunk(durationIn(a.unit, v, &o.Unusable), a.rank)
	case names.OperationName, names.ProviderName, names.RequestModel:
		o.tellText(a.standard, a.rank, v)
	default:
		o.tellTokens(a.standard, a.rank, v)
	}
}

// tell keeps the most trustworthy of what is told of a standard attribute.
func (o *Observation) tell(standard names.Standard, told Told) {
	if kept := &o.Standard[standard]; !kept.Known || told.Rank < kept.Rank {
		told.Known = true
		*kept = told
	}
}

// tellFirstChunk takes a time to the first chunk. One that cannot be true gives way
// to any other.
func (o *Observation) tellFirstChunk(d latency.Optional[time.Duration], rank uint8) {
	switch {
	case !d.Known:
	case d.Value < 0:
		o.Rejected[latency.Negative]++
	case d.Value > o.Request.Duration:
		o.Rejected[latency.LongerThanRequest]++
	default:
		o.tell(names.TimeToFirstChunk, Told{Duration: d.Value, Rank: rank})
	}
}

func (o *Observation) tellText(standard names.Standard, rank uint8, v pcommon.Value) {
	if v.Str() != "" {
		o.tell(standard, Told{Text: v.Str(), Rank: rank})
	}
}

func (o *Observation) tellTokens(standard names.Standard, rank uint8, v pcommon.Value) {
	if n := integer(v, &o.Unusable); n.Known && n.Value >= 0 {
		o.tell(standard, Told{Tokens: n.Value, Rank: rank})
	} else if n.Known {
		o.Unusable++
	}
}

// takeFinishReasons takes what a finish reason says of the outcome. There may be
// a list of them, or the text of one in JSON. Some engines add an error's message
// in parentheses, of which no word counts.
func (o *Observation) takeFinishReasons(v pcommon.Value) {
	if v.Type() == pcommon.ValueTypeSlice {
		for _, reason := range v.Slice().All() {
			o.takeFinishReason(reason.Str())
		}
		return
	}
	text, _, _ := strings.Cut(v.Str(), "(")
	for reason := range strings.FieldsFuncSeq(text, isJSONMark) {
		o.takeFinishReason(reason)
	}
}

func isJSONMark(r rune) bool {
	switch r {
	case '[', ']', '"', ',', ' ':
		return true
	}
	return false
}

func (o *Observation) takeFinishReason(reason string) {
	switch reason {
	case "abort", "aborted", "cancelled", "canceled", "Cancelled", "Dropped":
		o.Request.Outcome = names.OutcomeCancelled
	case "error", "Error":
		if o.Request.Outcome == "" {
			o.Request.Outcome = names.OutcomeError
		}
	case "not_finished": // another engine goes on with it
		if o.Request.Outcome == "" {
			o.Request.Outcome = names.OutcomeIncomplete
		}
	}
}

// isCancellation tells the errors that clients get when they cancel a request
// themselves.
func isCancellation(errorType string) bool {
	for _, suffix := range [...]string{
		"AbortError", "CancelledError", "OperationCanceledException", "GeneratorExit", "context.Canceled", "context canceled",
	} {
		if strings.HasSuffix(errorType, suffix) {
			return true
		}
	}
	return false
}
