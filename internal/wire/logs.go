package wire

import (
	"bytes"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Field numbers of OTLP's logs.proto and logs_service.proto above the record.
const (
	requestResourceLogs = 1

	resourceLogsResource     = 1
	resourceLogsScopeLogs    = 2
	resourceLogsOldScopeLogs = 1000 // of OTLP before 0.15

	scopeLogRecords = 2
)

// NotTokenEvent is the reason for rejecting log records that are not token events.
const NotTokenEvent assembly.Reason = "not_token_event"

var errNotTokenEvent = assembly.Errorf(NotTokenEvent,
	"this endpoint accepts only token events (EventName %s, %s, %s, %s, %s or %s.{start,scheduled,chunk,end}); send other log records to an otlp receiver",
	names.LogTokenGenerated, names.LogCompletionChunk, names.LogCompletionChunkOfLLM, names.LogContentChunk, names.LogStreamedChunk,
	strings.TrimSuffix(names.LogStreamStart, ".start"))

// Logs decodes encoded OTLP ExportLogsServiceRequest messages, of which each log
// record may be a token event. It reuses its buffers and is not safe for concurrent
// use.
type Logs struct {
	record     logRecord
	resource   logResource
	attributes []byte
	id         []byte
}

// Decode adds the token events of a request to the batch and rejects all other
// records. It returns an error, and adds nothing, if the request is malformed or
// beyond the limits of logs.
func (l *Logs) Decode(request []byte, batch *assembly.Batch, reject Reject) error {
	left := maxLogValues
	if err := exportLogsRequest.check(request, 0, &left); err != nil {
		return err
	}
	l.DecodeTrusted(request, batch, reject)
	return nil
}

// DecodeTrusted is Decode without checks, for requests that this process encoded.
func (l *Logs) DecodeTrusted(request []byte, batch *assembly.Batch, reject Reject) {
	for f := range fields(&request) {
		if f.is(requestResourceLogs, protowire.BytesType) {
			l.resource = logResource{logs: f.bytes}
			if !l.scopes(resourceLogsScopeLogs, batch, reject) {
				l.scopes(resourceLogsOldScopeLogs, batch, reject)
			}
		}
	}
	l.resource = logResource{}
}

// scopes decodes the ScopeLogs in the field num of the current ResourceLogs and
// reports whether there are any.
func (l *Logs) scopes(num protowire.Number, batch *assembly.Batch, reject Reject) (found bool) {
	message := l.resource.logs
	for f := range fields(&message) {
		if f.is(num, protowire.BytesType) {
			found = true
			l.records(f.bytes, batch, reject)
		}
	}
	return found
}

func (l *Logs) records(scopeLogs []byte, batch *assembly.Batch, reject Reject) {
	for f := range fields(&scopeLogs) {
		if !f.is(scopeLogRecords, protowire.BytesType) {
			continue
		}
		l.record.read(f.bytes)
		event := eventOf(l.record.eventName())
		if event == noEvent {
			reject(0, "", errNotTokenEvent)
			continue
		}
		if err := l.add(event, batch); err != nil {
			reject(0, "", err)
		}
	}
}

// logResource is the resource of a ResourceLogs, encoded at the first use.
type logResource struct {
	logs    []byte // the ResourceLogs
	encoded bool
	list    []byte
	err     error
}

// attributes returns the resource as a canonical KeyValueList. Batches may keep it.
func (r *logResource) attributes() ([]byte, error) {
	if !r.encoded {
		r.encoded = true
		r.list, r.err = r.encode()
	}
	return r.list, r.err
}

func (r *logResource) encode() (list []byte, err error) {
	count, logs := 0, r.logs
	for outer := range fields(&logs) {
		if !outer.is(resourceLogsResource, protowire.BytesType) {
			continue
		}
		for f := range fields(&outer.bytes) {
			if !f.is(resourceAttributes, protowire.BytesType) {
				continue
			}
			count++
			if err := checkNumber(count); err != nil {
				return nil, err
			}
			key, value := readKeyValue(f.bytes)
			if list, err = appendAttribute(list, key, &value, 0); err != nil {
				return nil, err
			}
		}
	}
	return bytes.Clone(list), nil // trims spare capacity
}
