// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire decodes token events from every wire format into an
// assembly.Batch. It checks the form of the bytes; the batch checks the events.
//
// No format has a field for text. Unknown fields are skipped. Error messages contain
// the names and positions of fields, and numbers, but no strings of the sender except IDs.
package wire

import (
	"encoding/hex"
	"time"
	"unicode/utf8"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// Reject receives the error of each rejected unit of a request: a line or a
// token_stream. position is its number, from 1. id is empty if the stream ID is unknown.
type Reject func(position int, id string, err error)

func malformed(format string, args ...any) error {
	return assembly.Errorf(assembly.Malformed, format, args...)
}

func invalid(format string, args ...any) error {
	return assembly.Errorf(assembly.Invalid, format, args...)
}

func errUTF8(name string) error { return malformed("%s is not valid UTF-8; encode it as UTF-8", name) }

// errTruncated is the error of a malformed message inside of a request of token
// streams.
func errTruncated(name string) error {
	return malformed("%s is truncated or not a protobuf message of tokenpulse.v1.ExportTokenStreamsRequest; check the encoder of the sender, and proxies that cut bodies", name)
}

// truncated returns an error if malformed bytes are left after the last field.
func (f *fields) truncated(name string) error {
	if !f.complete() {
		return errTruncated(name)
	}
	return nil
}

// copyID checks and copies a trace or span ID. An empty ID leaves dst as it is.
func copyID(dst, id []byte, field string) error {
	if len(id) == 0 {
		return nil
	}
	if len(id) != len(dst) {
		return invalid("`%s` has %d bytes; send %d (%d hexadecimal digits)", field, len(id), len(dst), 2*len(dst))
	}
	copy(dst, id)
	if isZero(id) {
		return invalid("`%s` is all zeros; omit the field if the ID is unknown", field)
	}
	return nil
}

// hexID decodes, checks and copies a trace or span ID. An empty text leaves dst as it is.
func hexID(dst, text []byte, field string) error {
	var id [16]byte
	if len(text) != 0 && len(text) != 2*len(dst) {
		return invalid("`%s` has %d characters; send %d hexadecimal digits", field, len(text), 2*len(dst))
	}
	n, err := hex.Decode(id[:], text)
	if err != nil {
		return invalid("`%s` has characters that are not hexadecimal digits; send %d hexadecimal digits", field, 2*len(dst))
	}
	return copyID(dst, id[:n], field)
}

func isZero(id []byte) bool {
	for _, b := range id {
		if b != 0 {
			return false
		}
	}
	return true
}

func text(b []byte, name string) (string, error) {
	if !utf8.Valid(b) {
		return "", errUTF8(name)
	}
	return string(b), nil
}

// vantageOf returns an invalid vantage, which the batch rejects, for an empty or
// unknown name.
func vantageOf(name []byte) timeline.Vantage {
	if v, ok := timeline.ParseVantage(name); ok && v != timeline.VantageUnspecified {
		return v
	}
	return timeline.VantageEngine + 1
}

var errChannel = invalid("`channel` is unknown; send content, reasoning, tool_call or audio")

// parseTime returns an RFC 3339 time in nanoseconds since 1970.
func parseTime(text []byte) (int64, error) {
	var at time.Time
	if at.UnmarshalText(text) != nil {
		return 0, invalid("`time` is not RFC 3339; send it as in 2026-11-21T05:48:12.181556Z")
	}
	if at.Year() < 1970 || at.Year() > 2261 {
		return 0, invalid("`time` is in the year %d; send one from 1970 to 2261", at.Year())
	}
	return at.UnixNano(), nil
}
