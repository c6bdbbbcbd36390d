// Package assembly puts the parts of token streams together: it takes what
// requests say of streams, in any order, and gives back whole streams.
//
// A request is decoded into a Batch, which no other goroutine sees: checking an
// event and packing a chunk take no lock. The batch then goes through the Store
// as one transaction:
//
//	tx, err := store.Begin(ctx, batch) // claims the streams, checks the limits
//	deliver(tx.Finished)               // outside of any lock
//	tx.Accept()                        // or tx.Refuse(): as if it had never been
//
// A claim is the lock of one stream. While a transaction holds it nobody else
// touches the stream, and whoever needs it waits for the transaction's end.
package assembly

import (
	"errors"
	"fmt"
)

// Limits bound what a Store and its batches hold.
type Limits struct {
	// MaxStreams bounds how many streams are open at a time.
	MaxStreams int
	// MaxChunksPerStream bounds the chunks of one stream. Later ones are
	// dropped and counted on it.
	MaxChunksPerStream int
	// MaxStreamBytes bounds a stream's id, attributes and resource, encoded.
	MaxStreamBytes int
	// MaxMemory bounds the bytes that all open streams hold together.
	MaxMemory int64
}

// Reason classifies why an event was rejected for good.
type Reason string

// Malformed is for what cannot be read, Invalid for a value out of range,
// UnknownStream for events of a stream that has not started or is over, and
// Limit for chunks and attributes past a limit of one stream.
const (
	Malformed     Reason = "malformed"
	Invalid       Reason = "invalid"
	UnknownStream Reason = "unknown_stream"
	Limit         Reason = "limit"
)

// EventError says why events were rejected, to whoever sent them. Its message
// names fields and stream ids, and no other part of what was sent.
type EventError struct {
	Reason  Reason
	Message string
}

func (e *EventError) Error() string { return e.Message }

// Errorf makes an EventError.
func Errorf(reason Reason, format string, args ...any) *EventError {
	return &EventError{reason, fmt.Sprintf(format, args...)}
}

// ReasonOf returns the reason of an EventError, and Malformed for other errors.
func ReasonOf(err error) Reason {
	if event, ok := errors.AsType[*EventError](err); ok {
		return event.Reason
	}
	return Malformed
}

// FullError says that a batch needs more room than a limit leaves. Nothing of
// the batch was applied: it can be sent again, later.
type FullError struct {
	// Setting is the limit's name in the user's configuration.
	Setting string
}

func (e *FullError) Error() string {
	return e.Setting + " is reached: send the same again later, or raise " + e.Setting
}

// The names of the limits that a whole batch can run into.
const (
	SettingMaxStreams = "max_streams"
	SettingMaxMemory  = "max_memory_mib"
)

// quoteID makes a stream id fit for a message.
func quoteID[T string | []byte](id T) string {
	const enough = 64
	if len(id) > enough {
		return fmt.Sprintf("%q...", id[:enough])
	}
	return fmt.Sprintf("%q", id)
}
