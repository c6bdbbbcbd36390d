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
	fieldCount
)

// fieldIndexes holds the fields by their names.
var fieldIndexes = map[string]fieldIndex{
	"event":          fieldEvent,
	"stream_id":      fieldStreamID,
	"time_unix_nano": fieldTimeUnixNano,
	"time":           fieldTime,
	"tokens":         fieldTokens,
	"channel":        fieldChannel,
	"seq":            fieldSeq,
	"trace_id":       fieldTraceID,
	"span_id":        fieldSpanID,
	"parent_span_id": fieldParentSpanID,
	"vantage":        fieldVantage,
	"resource":       fieldResource,
	"attributes":     fieldAttributes,
	"usage":          fieldUsage,
	"finish_reason":  fieldFinishReason,
	"error":          fieldError,
	"cancelled":      fieldCancelled,
}
