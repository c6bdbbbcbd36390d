// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// NotTokenEvent is the reason for rejecting log records that are not token events.
const NotTokenEvent assembly.Reason = "not_token_event"

var errNotTokenEvent = assembly.Errorf(NotTokenEvent,
	"this endpoint accepts only token events (EventName %s, %s, %s, %s, %s or %s.{start,scheduled,chunk,end}); send other log records to an otlp receiver",
	names.LogTokenGenerated, names.LogCompletionChunk, names.LogLLMCompletionChunk, names.LogContentChunk, names.LogGenAIStreamChunk,
	strings.TrimSuffix(names.LogStreamStart, ".start"))

// Logs decodes encoded OTLP ExportLogsServiceRequest messages, of which each log
// record may be a token event. It reuses its buffers and is not safe for concurrent
// use.
type Logs struct{ events logEvents }

// Decode adds the token events of a request to the batch and rejects all other
// records. It returns an error if the request is malformed or beyond the limits of
// logs; the batch must then be reset.
func (l *Logs) Decode(request []byte, batch *assembly.Batch, reject Reject) error {
	left := maxLogValues
	if err := exportLogsRequest.check(request, 0, &left); err != nil {
		return err
	}
	f := fieldsOf(request)
	for f.next() {
		if !f.is(requestResourceLogs, bytesType) {
			continue
		}
		l.events.resource = logResource{logs: f.bytes}
		found, err := l.scopes(resourceLogsScopeLogs, batch, reject)
		if !found {
			_, err = l.scopes(resourceLogsOldScopeLogs, batch, reject)
		}
		if err != nil {
			return err
		}
	}
	l.events.resource = logResource{}
	return nil
}

// scopes decodes the ScopeLogs in the field num of the current ResourceLogs and
// reports whether there are any.
func (l *Logs) scopes(num protowire.Number, batch *assembly.Batch, reject Reject) (found bool, err error) {
	message := l.events.resource.logs
	f := fieldsOf(message)
	for f.next() {
		if f.is(num, bytesType) {
			found = true
			if err := l.records(f.bytes, batch, reject); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

func (l *Logs) records(scopeLogs []byte, batch *assembly.Batch, reject Reject) error {
	f := fieldsOf(scopeLogs)
	for f.next() {
		if !f.is(scopeLogRecords, bytesType) {
			continue
		}
		if !l.events.record.read(f.bytes) {
			return ErrNotLogs
		}
		if err := l.events.add(batch); err != nil {
			reject(0, "", err)
		}
	}
	return nil
}
