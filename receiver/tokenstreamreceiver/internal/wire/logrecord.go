// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// logRecord is an encoded LogRecord with the fields that every token event has. Its body
// is never read.
type logRecord struct {
	message  []byte
	name     []byte // EventName, or the attribute that older records have instead
	unixNano int64
	observed int64
	traceID  [16]byte // zero if missing
	spanID   [8]byte
}

// read reads an encoded record. It reports false if an ID has a wrong length.
func (r *logRecord) read(message []byte) bool {
	*r = logRecord{message: message}
	ok := true
	f := fieldsOf(message)
	for f.next() {
		switch {
		case f.is(recordTime, fixed64Type):
			r.unixNano = int64(f.number)
		case f.is(recordObservedTime, fixed64Type):
			r.observed = int64(f.number)
		case f.is(recordTraceID, bytesType):
			copy(r.traceID[:], f.bytes)
			ok = ok && (len(f.bytes) == 0 || len(f.bytes) == len(r.traceID))
		case f.is(recordSpanID, bytesType):
			copy(r.spanID[:], f.bytes)
			ok = ok && (len(f.bytes) == 0 || len(f.bytes) == len(r.spanID))
		case f.is(recordEventName, bytesType):
			r.name = f.bytes
		}
	}
	if len(r.name) == 0 {
		if value := r.field(names.LogEventName); value.Kind == StringValue {
			r.name = value.Bytes
		}
	}
	return ok
}

// field returns the first attribute of a name. The value is empty if it is missing.
func (r *logRecord) field(name string) Value {
	message := r.message
	f := fieldsOf(message)
	for f.next() {
		if f.is(recordAttributes, bytesType) {
			if key, value := readKeyValue(f.bytes); string(key) == name {
				return value
			}
		}
	}
	return Value{}
}

func (r *logRecord) hasTrace() bool { return r.traceID != [16]byte{} }

func (r *logRecord) hasSpan() bool { return r.spanID != [8]byte{} }

// text reads a field that is a string. It is empty if the field is missing.
func (r *logRecord) text(name string) ([]byte, error) {
	value := r.field(name)
	if value.Kind == EmptyValue {
		return nil, nil
	}
	return textOf(&value, name)
}

// finishReason returns the reason, or the first one of an array or of a JSON array.
func (r *logRecord) finishReason() (string, error) {
	value := r.field(names.LogFinishReason)
	if value.Kind == ArrayValue {
		reasons := value.Elements()
		if !reasons.Next() {
			return "", nil
		}
		reason, err := textOf(&reasons.Value, names.LogFinishReason)
		return string(reason), err
	}
	reason, err := r.text(names.LogFinishReason)
	if first, ok := firstOfJSON(reason); ok {
		return first, nil
	}
	return string(reason), err
}

// firstOfJSON returns the first string of a JSON array, and "" for an empty array.
func firstOfJSON(list []byte) (first string, ok bool) {
	decoder := jsontext.NewDecoder(bytes.NewReader(list))
	if start, err := decoder.ReadToken(); err != nil || start.Kind() != '[' {
		return "", false
	}
	switch token, err := decoder.ReadToken(); {
	case err != nil:
		return "", false
	case token.Kind() == ']':
		return "", true
	default:
		return token.String(), token.Kind() == '"'
	}
}

func (r *logRecord) cancelled(cancelled *bool) (err error) {
	value := r.field(names.LogCancelled)
	switch value.Kind {
	case EmptyValue:
		return nil
	case BoolValue:
		*cancelled = value.Bits != 0
		return nil
	case StringValue:
		if *cancelled, err = strconv.ParseBool(string(value.Bytes)); err == nil {
			return nil
		}
	}
	return invalid("`cancelled` is %s; send true or false", value.describe())
}

// usage reads the token counts: from the map usage, or else from attributes such as
// usage.input_tokens.
func (r *logRecord) usage(usage *assembly.Usage) error {
	reported := r.field(names.LogUsage)
	if reported.Kind != EmptyValue && reported.Kind != MapValue {
		return invalid("`usage` is %s; send a map of token counts", reported.describe())
	}
	for _, count := range [...]struct {
		name string
		to   *optional.Value[int64]
	}{
		{names.LogInputTokens, &usage.Input},
		{names.LogOutputTokens, &usage.Output},
		{names.LogReasoningTokens, &usage.Reasoning},
		{names.LogCachedInputTokens, &usage.CachedInput},
		{names.LogCacheWriteInputTokens, &usage.CacheWrite},
	} {
		value := lookup(reported.Bytes, count.name)
		if value.Kind == EmptyValue {
			value = r.field(names.LogUsage + "." + count.name)
		}
		if value.Kind == EmptyValue {
			continue
		}
		if count.to.Value, count.to.Known = value.integer(); !count.to.Known {
			return assembly.ErrUsage(count.name, value.describe())
		}
	}
	return nil
}

// lookup returns the first value of a key in a KeyValueList. The value is empty if the
// key is missing.
func lookup(list []byte, name string) Value {
	a := WalkAttributes(list)
	for a.Next() {
		if string(a.Key) == name {
			return a.Value
		}
	}
	return Value{}
}

// hexID reads a trace or span ID. dst stays as it is if the field is missing or empty.
func (r *logRecord) hexID(dst []byte, name string) error {
	text, err := r.text(name)
	if err != nil {
		return err
	}
	return hexID(dst, text, name)
}

func textOf(value *Value, name string) ([]byte, error) {
	if value.Kind != StringValue || !utf8.Valid(value.Bytes) {
		return nil, invalid("`%s` is %s; send a UTF-8 string", name, value.describe())
	}
	return value.Bytes, nil
}
