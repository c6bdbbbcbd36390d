// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

// fieldIndex is a known field of an NDJSON event.
type fieldIndex int

const (
	fieldEvent fieldIndex = iota
	fieldStreamID
	fieldTimeUnixNano
	fieldTime
	fieldTokens
	fieldChannel
	fieldSeq
	fieldTraceID
	fieldSpanID
	fieldParentSpanID
	fieldVantage
	fieldResource
	fieldAttributes
	fieldUsage
	fieldFinishReason
	fieldError
	fieldCancelled
	fieldInterrupted
	fieldCount
)

// fieldNames are the names in an event. Those of chunks come first, because fieldNamed compares them in turn.
var fieldNames = [fieldCount]string{
	fieldEvent: "event", fieldStreamID: "stream_id", fieldTimeUnixNano: "time_unix_nano", fieldTime: "time",
	fieldTokens: "tokens", fieldChannel: "channel", fieldSeq: "seq",
	fieldTraceID: "trace_id", fieldSpanID: "span_id", fieldParentSpanID: "parent_span_id", fieldVantage: "vantage",
	fieldResource: "resource", fieldAttributes: "attributes", fieldUsage: "usage",
	fieldFinishReason: "finish_reason", fieldError: "error", fieldCancelled: "cancelled", fieldInterrupted: "interrupted",
}

func (f fieldIndex) String() string { return fieldNames[f] }

// fieldNamed returns the field of this name.
func fieldNamed(name []byte) (index fieldIndex, known bool) {
	for i := range fieldNames {
		if string(name) == fieldNames[i] {
			return fieldIndex(i), true
		}
	}
	return 0, false
}
