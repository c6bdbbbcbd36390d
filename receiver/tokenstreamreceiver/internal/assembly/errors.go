// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"errors"
	"fmt"
)

// Reason classifies why an event was rejected.
type Reason string

// Malformed is for input that cannot be decoded, Invalid for a value out of range,
// UnknownStream for events of a stream that is not open, and Limit for chunks and
// attributes beyond a limit of one stream.
const (
	Malformed     Reason = "malformed"
	Invalid       Reason = "invalid"
	UnknownStream Reason = "unknown_stream"
	Limit         Reason = "limit"
)

// EventError is the reason for a rejection, sent back to the sender. Its message
// contains field names, stream IDs and numbers, but no other part of the input.
type EventError struct {
	Reason  Reason
	Message string
}

func (e *EventError) Error() string { return e.Message }

// Errorf returns an EventError with a formatted message.
func Errorf(reason Reason, format string, args ...any) *EventError {
	return &EventError{reason, fmt.Sprintf(format, args...)}
}

// ReasonOf returns the reason of an EventError, and Malformed for other errors.
func ReasonOf(err error) Reason {
	var event *EventError
	if errors.As(err, &event) {
		return event.Reason
	}
	return Malformed
}

// FullError means that a limit leaves no room for a batch. Nothing of the batch was
// applied, so the sender can retry it.
type FullError struct {
	// Setting is the name of the limit in the user's configuration.
	Setting string
	// Of is the limit that SettingMaxSharePerClient divides, or empty.
	Of string
}

func (e *FullError) Error() string {
	switch e.Setting {
	case SettingPipeline:
		return "the pipeline temporarily refuses data, so no stream is opened; send the request again later"
	case SettingMaxSharePerClient:
		return "max_share_per_client is reached: less than half of " + e.Of + " is free, and this client has its share open; " +
			"send the request again later, or raise max_share_per_client"
	default:
		return e.Setting + " is reached; send the request again later, or raise " + e.Setting
	}
}

// Values of FullError.Setting. SettingPipeline is no setting: it is for the batches that
// Batch.RefuseStarts refuses.
const (
	SettingMaxStreams        = "max_streams"
	SettingMaxSharePerClient = "max_share_per_client"
	SettingMaxMemory         = "max_memory_mib"
	SettingPipeline          = "pipeline"
)

// quoteID quotes a stream ID for a message, and truncates a long one.
func quoteID[T string | []byte](id T) string {
	const limit = 64
	if len(id) > limit {
		return fmt.Sprintf("%q...", id[:limit])
	}
	return fmt.Sprintf("%q", id)
}
