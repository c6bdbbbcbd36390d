// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// Field numbers of OTLP's logs.proto and logs_service.proto.
const (
	requestResourceLogs = 1

	resourceLogsResource     = 1
	resourceLogsScopeLogs    = 2
	resourceLogsOldScopeLogs = 1000 // of OTLP before 0.15

	scopeLogScope   = 1
	scopeLogRecords = 2

	scopeAttributes = 3

	recordTime         = 1
	recordBody         = 5
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
var ErrNotLogs = malformed("the body is not an OTLP ExportLogsServiceRequest; check the sender's exporter, and over HTTP its Content-Type")

var (
	errTooManyValues = assembly.Errorf(assembly.Limit, "the request has more than %d records, attributes and values; send smaller requests", maxLogValues)
	errTooDeep       = invalid("the request has a value that is nested too deep, in more than %d messages; send flatter values", maxLogDepth)
)

// messageType lists the fields of a message that are messages themselves.
type messageType []nestedField

type nestedField struct {
	num     protowire.Number
	message *messageType
}

// exportLogsRequest is the type of an ExportLogsServiceRequest.
var exportLogsRequest = func() *messageType {
	value := new(messageType) // contains itself
	attribute := &messageType{{keyValueValue, value}}
	array := &messageType{{arrayValues, value}}
	list := &messageType{{keyValueListValues, attribute}}
	*value = messageType{{ArrayValue, array}, {MapValue, list}}

	resource := &messageType{{resourceAttributes, attribute}, {resourceEntityRefs, new(messageType)}}
	scope := &messageType{{scopeAttributes, attribute}}
	record := &messageType{{recordAttributes, attribute}, {recordBody, value}}
	scopeLogs := &messageType{{scopeLogRecords, record}, {scopeLogScope, scope}}
	resourceLogs := &messageType{
		{resourceLogsResource, resource}, {resourceLogsScopeLogs, scopeLogs}, {resourceLogsOldScopeLogs, scopeLogs},
	}
	return &messageType{{requestResourceLogs, resourceLogs}}
}()

// check checks that a message is well-formed and within the limits of logs. left is
// the number of messages that the request may still have.
func (t *messageType) check(message []byte, depth int, left *int) error {
	if depth > maxLogDepth {
		return errTooDeep
	}
	if *left--; *left < 0 {
		return errTooManyValues
	}
	f := fieldsOf(message)
	for f.next() {
		for _, nested := range *t {
			if nested.num != f.num {
				continue
			}
			if f.kind != bytesType {
				return ErrNotLogs
			}
			if err := nested.message.check(f.bytes, depth+1, left); err != nil {
				return err
			}
		}
	}
	if !f.complete() {
		return ErrNotLogs
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
			return malformed("the body is not valid JSON at byte %d; check the encoder of the sender", decoder.InputOffset()+1)
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
			return malformed("the body has more than one JSON value; send one for each request")
		}
	}
}
