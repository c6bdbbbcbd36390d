// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"bytes"
	"fmt"
	"strconv"
)

// Names of the events in NDJSON.
const (
	EventStart     = "start"
	EventScheduled = "scheduled"
	EventChunk     = "chunk"
	EventEnd       = "end"
)

// Event is one line of NDJSON. It has no field for text, so text is never read.
type Event struct {
	Event        string     `json:"event"`
	StreamID     string     `json:"stream_id"`
	TimeUnixNano UnixNano   `json:"time_unix_nano,omitzero"`
	Time         string     `json:"time,omitempty"` // RFC 3339, instead of TimeUnixNano
	TraceID      string     `json:"trace_id,omitempty"`
	SpanID       string     `json:"span_id,omitempty"`
	ParentSpanID string     `json:"parent_span_id,omitempty"`
	Vantage      string     `json:"vantage,omitempty"`
	Resource     Attributes `json:"resource,omitempty"`
	Tokens       *int64     `json:"tokens,omitempty"`
	Channel      string     `json:"channel,omitempty"`
	Sequence     *uint64    `json:"seq,omitempty"`
	Usage        *Usage     `json:"usage,omitempty"`
	FinishReason string     `json:"finish_reason,omitempty"`
	Error        string     `json:"error,omitempty"`
	Cancelled    bool       `json:"cancelled,omitempty"`
	Interrupted  bool       `json:"interrupted,omitempty"`
	Attributes   Attributes `json:"attributes,omitempty"`
}

// UnixNano is a Unix time in nanoseconds. Its JSON is a decimal string, because
// JSON numbers lose digits in many languages; it also decodes from an integer.
type UnixNano int64

// MarshalJSON implements json.Marshaler.
func (t UnixNano) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(t), 10)), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *UnixNano) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(string(bytes.Trim(b, `"`)), 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("time_unix_nano %s is not a Unix time in whole nanoseconds", b)
	}
	*t = UnixNano(n)
	return nil
}
