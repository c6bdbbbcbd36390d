// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// alias is a name of a standard attribute, its own included.
type alias struct {
	standard names.Standard
	rank     uint8
	unit     time.Duration // of an attribute that is a duration
}

var aliases = func() *names.Lookup[alias] {
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
	return names.NewLookup(all)
}()

// Ranks of values that no alias holds: an attribute that only one reader knows, and a time to the
// first chunk computed from two absolute times.
const (
	readerRank   = math.MaxUint8 - 1
	absoluteRank = math.MaxUint8
)

// readStandard reads an attribute whose name is an alias.
func (o *Observation) readStandard(a *alias, v pcommon.Value) {
	switch a.standard {
	case names.Streaming:
		if streaming := boolean(v); streaming.Known {
			o.streaming = streaming
		}
	case names.FinishReasons:
		o.readFinishReasons(v)
	case names.ErrorKind:
		o.Request.ErrorType = v.Str()
		if isCancellation(v.Str()) {
			o.Request.Outcome = names.OutcomeCancelled
		}
	case names.TimeToFirstChunk:
		o.setFirstChunk(durationIn(a.unit, v, &o.Unusable), a.rank)
	case names.OperationName, names.ProviderName, names.RequestModel:
		o.setText(a.standard, a.rank, v)
		if a.standard == names.OperationName && v.Str() == "chat_streaming" && !o.streaming.Known {
			o.streaming = optional.Of(true)
		}
	default:
		o.setTokens(a.standard, a.rank, v)
	}
}

// readFinishReasons keeps the worst of a list of finish reasons, or of a JSON text of one. Some engines
// append an error message in parentheses; it is ignored.
func (o *Observation) readFinishReasons(v pcommon.Value) {
	if v.Type() == pcommon.ValueTypeSlice {
		for _, reason := range v.Slice().All() {
			o.Request.Reason = o.Request.Reason.Worse(reason.Str())
		}
		return
	}
	text, _, _ := strings.Cut(v.Str(), "(")
	for reason := range strings.FieldsFuncSeq(text, isJSONMark) {
		o.Request.Reason = o.Request.Reason.Worse(reason)
	}
}

func isJSONMark(r rune) bool {
	switch r {
	case '[', ']', '"', ',', ' ':
		return true
	}
	return false
}

// isCancellation reports whether an error is one that clients get when they cancel a request
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
