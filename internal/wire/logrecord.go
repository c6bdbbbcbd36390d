package wire

import (
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Field numbers of LogRecord in OTLP's logs.proto.
const (
	recordTime         = 1
	recordAttributes   = 6
	recordTraceID      = 9
	recordSpanID       = 10
	recordObservedTime = 11
	recordEventName    = 12
)

// logField is an attribute of a log record that is a field of a token event.
type logField int

const (
	logEventName logField = iota
	logStreamID
	logTraceID
	logSpanID
	logParentSpanID
	logVantage
	logAttributes
	logTokens
	logChannel
	logSeq
	logFinishReason
	logError
	logCancelled
	logUsage
	logUsageInput
	logUsageOutput
	logUsageReasoning
	logUsageCachedInput
	logFieldCount
)

var logFieldNames = [logFieldCount]string{
	logEventName:        names.LogEventName,
	logStreamID:         names.LogStreamID,
	logTraceID:          names.LogTraceID,
	logSpanID:           names.LogSpanID,
	logParentSpanID:     names.LogParentSpanID,
	logVantage:          names.LogVantage,
	logAttributes:       names.LogAttributes,
	logTokens:           names.LogTokens,
	logChannel:          names.LogChannel,
	logSeq:              names.LogSeq,
	logFinishReason:     names.LogFinishReason,
	logError:            names.LogError,
	logCancelled:        names.LogCancelled,
	logUsage:            names.LogUsage,
	logUsageInput:       names.LogUsage + "." + names.LogInputTokens,
	logUsageOutput:      names.LogUsage + "." + names.LogOutputTokens,
	logUsageReasoning:   names.LogUsage + "." + names.LogReasoningTokens,
	logUsageCachedInput: names.LogUsage + "." + names.LogCachedInputTokens,
}

var logFieldsByName = func() map[string]logField {
	fields := map[string]logField{}
	for field, name := range logFieldNames {
		fields[name] = logField(field)
	}
	return fields
}()

// logRecord is the parts of a LogRecord that a token event may have. Its body is not
// read.
type logRecord struct {
	message  []byte
	name     []byte
	unixNano int64
	observed int64
	traceID  [16]byte // zero if missing
	spanID   [8]byte
	fields   [logFieldCount]Value
	present  uint32 // has a bit for each of fields that is set
}

func (r *logRecord) read(message []byte) {
	r.message, r.name, r.unixNano, r.observed = message, nil, 0, 0
	r.traceID, r.spanID, r.present = [16]byte{}, [8]byte{}, 0
	for f := range fields(&message) {
		switch f.num {
		case recordTime:
			r.unixNano = int64(f.number)
		case recordObservedTime:
			r.observed = int64(f.number)
		case recordTraceID:
			r.traceID = [16]byte{}
			copy(r.traceID[:], f.bytes)
		case recordSpanID:
			r.spanID = [8]byte{}
			copy(r.spanID[:], f.bytes)
		case recordEventName:
			r.name = f.bytes
		case recordAttributes:
			r.readAttribute(f.bytes)
		}
	}
}

// readAttribute keeps the first attribute of each name.
func (r *logRecord) readAttribute(keyValue []byte) {
	key, value := readKeyValue(keyValue)
	field, known := logFieldsByName[string(key)]
	if known && r.present&(1<<field) == 0 {
		r.present |= 1 << field
		r.fields[field] = value
	}
}

// field returns an attribute that is present and not empty.
func (r *logRecord) field(field logField) (value *Value, ok bool) {
	value = &r.fields[field]
	return value, r.present&(1<<field) != 0 && value.Kind != EmptyValue
}

// eventName returns the EventName, or the attribute that older records have instead.
func (r *logRecord) eventName() []byte {
	if len(r.name) > 0 {
		return r.name
	}
	if value, ok := r.field(logEventName); ok && value.Kind == StringValue {
		return value.Bytes
	}
	return nil
}

func (r *logRecord) hasTrace() bool { return r.traceID != [16]byte{} }

func (r *logRecord) hasSpan() bool { return r.spanID != [8]byte{} }

// text reads a field that is a string. It is empty if the field is missing.
func (r *logRecord) text(field logField) ([]byte, error) {
	value, ok := r.field(field)
	if !ok {
		return nil, nil
	}
	return textOf(value, field)
}
