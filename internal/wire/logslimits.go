package wire

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
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

// messageType is the known fields of a protobuf message.
type messageType struct {
	fields []fieldType
}

type fieldType struct {
	num  protowire.Number
	kind protowire.Type
	// message is the type of a field that is a message.
	message *messageType
	// counts is set for fields that count toward maxLogValues: messages and repeated
	// fields.
	counts bool
	// length is the number of bytes of an ID; it may also be empty.
	length int
}

func scalar(num protowire.Number, kind protowire.Type) fieldType {
	return fieldType{num: num, kind: kind}
}

func nested(num protowire.Number, message *messageType) fieldType {
	return fieldType{num: num, kind: protowire.BytesType, message: message, counts: true}
}

func repeatedText(num protowire.Number) fieldType {
	return fieldType{num: num, kind: protowire.BytesType, counts: true}
}

func identifier(num protowire.Number, length int) fieldType {
	return fieldType{num: num, kind: protowire.BytesType, length: length}
}

// exportLogsRequest is the type of an ExportLogsServiceRequest.
var exportLogsRequest = func() *messageType {
	const (
		varint  = protowire.VarintType
		fixed32 = protowire.Fixed32Type
		fixed64 = protowire.Fixed64Type
		text    = protowire.BytesType
	)
	message := func(fields ...fieldType) *messageType { return &messageType{fields} }
	value := new(messageType) // contains itself
	attribute := message(
		scalar(keyValueKey, text),
		nested(keyValueValue, value),
		scalar(3, varint), // key_strindex, only in profiles
	)
	value.fields = []fieldType{
		scalar(StringValue, text),
		scalar(BoolValue, varint),
		scalar(IntValue, varint),
		scalar(DoubleValue, fixed64),
		nested(ArrayValue, message(nested(arrayValues, value))),
		nested(MapValue, message(nested(keyValueListValues, attribute))),
		scalar(BytesValue, text),
		scalar(8, varint), // string_value_strindex, only in profiles
	}
	resource := message(
		nested(resourceAttributes, attribute),
		scalar(2, varint), // dropped_attributes_count
		nested(resourceEntityRefs, message(
			scalar(1, text), // schema_url
			scalar(2, text), // type
			repeatedText(3), // id_keys
			repeatedText(4), // description_keys
		)),
	)
	scope := message(
		scalar(1, text),      // name
		scalar(2, text),      // version
		nested(3, attribute), // attributes
		scalar(4, varint),    // dropped_attributes_count
	)
	record := message(
		scalar(recordTime, fixed64),
		nested(recordAttributes, attribute),
		identifier(recordTraceID, len(logRecord{}.traceID)),
		identifier(recordSpanID, len(logRecord{}.spanID)),
		scalar(recordEventName, text),
		scalar(recordObservedTime, fixed64),
		nested(5, value),   // body
		scalar(2, varint),  // severity_number
		scalar(3, text),    // severity_text
		scalar(7, varint),  // dropped_attributes_count
		scalar(8, fixed32), // flags
	)
	scopeLogs := message(
		nested(1, scope),
		nested(scopeLogRecords, record),
		scalar(3, text), // schema_url
	)
	resourceLogs := message(
		nested(resourceLogsResource, resource),
		nested(resourceLogsScopeLogs, scopeLogs),
		scalar(3, text), // schema_url
		nested(resourceLogsOldScopeLogs, scopeLogs),
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

// field returns the field of a number, or nil. The usual fields come first.
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
