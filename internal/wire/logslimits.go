// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
)

// Field numbers of OTLP's logs.proto and logs_service.proto.
const (
	requestResourceLogs = 1

	resourceLogsResource     = 1
	resourceLogsScopeLogs    = 2
	resourceLogsOldScopeLogs = 1000 // of OTLP before 0.15

	scopeLogRecords = 2

	recordTime         = 1
	recordAttributes   = 6
	recordTraceID      = 9
	recordSpanID       = 10
	recordObservedTime = 11
	recordEventName    = 12
)

// Limits of a request of logs. In JSON they protect the Collector's decoder, which
// limits neither the recursion, which can end the process, nor the memory, which can
// be eighty times the size of a body.
const (
	// maxLogValues limits the records, attributes, values and so on of a request.
	maxLogValues = 1 << 20
	// maxLogDepth limits their nesting. It is enough for 60 nested maps or 80 arrays.
	maxLogDepth = 256
)

// ErrNotLogs is the error of a body that is not an ExportLogsServiceRequest.
var ErrNotLogs = malformed("the body is not an OTLP ExportLogsServiceRequest")

var (
	errTooManyValues = assembly.Errorf(assembly.Limit, "the request has more than %d records, attributes and values; send smaller requests", maxLogValues)
	errTooDeep       = invalid("the request has a value that is nested too deep")
)

// messageType is the known fields of a protobuf message, the usual ones first.
type messageType struct{ fields []fieldType }

type fieldType struct {
	num     protowire.Number
	kind    protowire.Type
	message *messageType // of a field that is a message
	counts  bool         // toward maxLogValues: messages and repeated fields
	length  int          // of an ID in bytes; it may also be empty
}

// exportLogsRequest is the type of an ExportLogsServiceRequest.
var exportLogsRequest = func() *messageType {
	message := func(fields ...fieldType) *messageType { return &messageType{fields} }
	nested := func(num protowire.Number, message *messageType) fieldType {
		return fieldType{num: num, kind: protowire.BytesType, message: message, counts: true}
	}
	repeated := func(num protowire.Number) fieldType {
		return fieldType{num: num, kind: protowire.BytesType, counts: true}
	}
	id := func(num protowire.Number, length int) fieldType {
		return fieldType{num: num, kind: protowire.BytesType, length: length}
	}
	text := func(num protowire.Number) fieldType { return fieldType{num: num, kind: protowire.BytesType} }
	varint := func(num protowire.Number) fieldType { return fieldType{num: num, kind: protowire.VarintType} }
	fixed32 := func(num protowire.Number) fieldType { return fieldType{num: num, kind: protowire.Fixed32Type} }
	fixed64 := func(num protowire.Number) fieldType { return fieldType{num: num, kind: protowire.Fixed64Type} }

	value := new(messageType)                          // contains itself
	keyStrindex, valueStrindex := varint(3), varint(8) // only in profiles
	attribute := message(text(keyValueKey), nested(keyValueValue, value), keyStrindex)
	array := message(nested(arrayValues, value))
	list := message(nested(keyValueListValues, attribute))
	value.fields = []fieldType{
		text(StringValue), varint(BoolValue), varint(IntValue), fixed64(DoubleValue),
		nested(ArrayValue, array), nested(MapValue, list), text(BytesValue), valueStrindex,
	}

	schemaURL, typeName, idKeys, descriptionKeys := text(1), text(2), repeated(3), repeated(4)
	entityRef := message(schemaURL, typeName, idKeys, descriptionKeys)
	droppedAttributes := varint(2)
	resource := message(nested(resourceAttributes, attribute), droppedAttributes, nested(resourceEntityRefs, entityRef))

	name, version, attributes, droppedAttributes := text(1), text(2), nested(3, attribute), varint(4)
	scope := message(name, version, attributes, droppedAttributes)

	severityNumber, severityText, body, droppedAttributes, flags := varint(2), text(3), nested(5, value), varint(7), fixed32(8)
	record := message(
		fixed64(recordTime), nested(recordAttributes, attribute), id(recordTraceID, 16), id(recordSpanID, 8), text(recordEventName),
		fixed64(recordObservedTime), body, severityNumber, severityText, droppedAttributes, flags,
	)
	schemaURL = text(3)
	scopeLogs := message(nested(scopeLogRecords, record), nested(1, scope), schemaURL)
	resourceLogs := message(
		nested(resourceLogsResource, resource), nested(resourceLogsScopeLogs, scopeLogs), nested(resourceLogsOldScopeLogs, scopeLogs), schemaURL,
	)
	return message(nested(requestResourceLogs, resourceLogs))
}()

// check checks that a message has the type and is within the limits of logs. left is
// the number of values that the request may still have.
func (t *messageType) check(message []byte, depth int, left *int) error {
	if depth > maxLogDepth {
		return errTooDeep
	}
	for f := range fields(&message) {
		known := t.field(f.num)
		if known == nil {
			continue
		}
		if f.kind != known.kind || known.length > 0 && len(f.bytes) != 0 && len(f.bytes) != known.length {
			return ErrNotLogs
		}
		if known.counts {
			*left--
		}
		if *left < 0 {
			return errTooManyValues
		}
		if known.message != nil {
			if err := known.message.check(f.bytes, depth+1, left); err != nil {
				return err
			}
		}
	}
	if len(message) > 0 {
		return ErrNotLogs
	}
	return nil
}

// field returns the field of a number, or nil.
func (t *messageType) field(num protowire.Number) *fieldType {
	for i := range t.fields {
		if t.fields[i].num == num {
			return &t.fields[i]
		}
	}
	return nil
}

// CheckLogsJSON checks that a body is JSON within the limits of logs. The limits
// count objects and array elements.
func CheckLogsJSON(body []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	values := 0
	for {
		token, err := decoder.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return malformed("not valid JSON, at byte %d", decoder.InputOffset()+1)
		}
		depth := decoder.StackDepth()
		if within, _ := decoder.StackIndex(depth); token.Kind() == '{' || within == '[' {
			values++
		}
		switch {
		case values > maxLogValues:
			return errTooManyValues
		case depth > maxLogDepth:
			return errTooDeep
		case depth == 0 && len(bytes.TrimSpace(body[decoder.InputOffset():])) > 0:
			return malformed("more than one JSON value")
		}
	}
}
