package tokenstreamreceiver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

const logsPath = "/v1/logs"

const notTokenEvent assembly.Reason = "not_token_event"

var errNotTokenEvent = assembly.Errorf(notTokenEvent,
	"this is no endpoint for logs: of log records it takes those with an EventName of %s, %s, %s, %s, %s or %s.{start,scheduled,chunk,end}; send all others to an otlp receiver",
	names.LogTokenGenerated, names.LogCompletionChunk, names.LogCompletionChunkOfLLM, names.LogContentChunk, names.LogStreamedChunk,
	strings.TrimSuffix(names.LogStreamStart, ".start"))

// handleLogs takes an OTLP ExportLogsServiceRequest.
func (r *tokenStreamReceiver) handleLogs(w http.ResponseWriter, req *http.Request, under *request, mediaType string) {
	under.reset(r.reportHTTP, true)
	switch mediaType {
	case typeJSON:
		r.handleMessage(w, req, under, under.readLogsJSON)
	case typeProtobuf:
		r.handleMessage(w, req, under, under.readLogsProtobuf)
	default:
		r.writeError(w, req, http.StatusUnsupportedMediaType, "Content-Type must be "+typeProtobuf+" or "+typeJSON)
	}
}

// readLogsProtobuf reads an encoded ExportLogsServiceRequest into the batch, or
// returns why it cannot.
func (r *request) readLogsProtobuf(message []byte) error {
	left := maxLogValues
	if err := checkMessage(message, logsShape, 0, &left); err != nil {
		return err
	}
	export := plogotlp.NewExportRequest()
	if export.UnmarshalProto(message) != nil { // its error may quote what was sent
		return errNoLogs
	}
	r.readLogs(export.Logs())
	return nil
}

// readLogsJSON is readLogsProtobuf for OTLP's JSON encoding.
func (r *request) readLogsJSON(body []byte) error {
	if err := checkJSON(body); err != nil {
		return err
	}
	export := plogotlp.NewExportRequest()
	if export.UnmarshalJSON(body) != nil { // its error quotes what was sent
		return errNoLogs
	}
	r.readLogs(export.Logs())
	return nil
}

// readLogs reads the records that are token events into the batch, and rejects
// the others.
func (r *request) readLogs(logs plog.Logs) {
	for _, resource := range logs.ResourceLogs().All() {
		shared := sync.OnceValues(func() ([]byte, error) { return encodeKeyValues(resource.Resource().Attributes()) })
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				event, ok := toLogEvent(record)
				if !ok {
					r.reject(0, "", errNotTokenEvent)
					continue
				}
				if err := event.add(r.batch, shared); err != nil {
					r.reject(0, "", err)
				}
			}
		}
	}
}

// The collector's decoders bound neither how deep they go, which can end the
// process, nor what they build, which can be eighty times the size of a body.
const (
	// maxLogValues bounds the records, attributes, values and so on of a request.
	maxLogValues = 1 << 20
	// maxLogDepth bounds how deep they are nested: 60 maps in one another, or 80
	// lists.
	maxLogDepth = 256
)

var (
	errNoLogs        = malformed("the body is no OTLP ExportLogsServiceRequest")
	errTooManyValues = assembly.Errorf(assembly.Limit, "the request has more than %d records, attributes and values: send smaller ones", maxLogValues)
	errTooDeep       = invalid("the request has a value that is nested too deep")
)

// shape tells which fields of a message are messages, and of what shape. Those of
// no shape are repeated, and have nothing inside.
type shape map[protowire.Number]shape

// logsShape is that of an ExportLogsServiceRequest.
var logsShape = func() shape {
	value := shape{}
	attribute := shape{2: value}
	value[5] = shape{1: value}     // array_value
	value[6] = shape{1: attribute} // kvlist_value
	resource := shape{1: attribute, 3: {3: nil, 4: nil}}
	scope := shape{3: attribute}
	scopeLogs := shape{1: scope, 2: {5: value, 6: attribute}}
	return shape{1: {1: resource, 2: scopeLogs, 1000: scopeLogs}}
}()

// checkMessage checks that a message is well-formed and within the bounds. left is
// how many values there may still be.
func checkMessage(message []byte, s shape, depth int, left *int) (err error) {
	if depth > maxLogDepth {
		return errTooDeep
	}
	wellFormed := each(message, func(num protowire.Number, kind protowire.Type, _ uint64, bytes []byte) {
		inside, known := s[num]
		if !known || kind != protowire.BytesType || err != nil {
			return
		}
		*left--
		switch {
		case *left < 0:
			err = errTooManyValues
		case inside != nil:
			err = checkMessage(bytes, inside, depth+1, left)
		}
	})
	if err == nil && !wellFormed {
		return errNoLogs
	}
	return err
}

// checkJSON does for JSON what checkMessage does for protobuf.
func checkJSON(body []byte) error {
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

// logsResponse answers a request that was applied, at least in part or because
// there was nothing to apply.
func (a *answer) logsResponse() plogotlp.ExportResponse {
	response := plogotlp.NewExportResponse()
	response.PartialSuccess().SetRejectedLogRecords(int64(a.Rejected))
	response.PartialSuccess().SetErrorMessage(a.messages())
	return response
}

// messages tells each message once, and of how many records it is.
func (a *answer) messages() string {
	var messages []string
	for _, e := range a.Errors {
		message := e.Message
		if e.units > 1 {
			message += fmt.Sprintf(" (%d records)", e.units)
		}
		messages = append(messages, message)
	}
	return strings.Join(messages, "; ")
}

// encodeLogs encodes an answer as OTLP does: as an ExportLogsServiceResponse, or
// a Status if the request failed, in the encoding of the request.
func (a *answer) encodeLogs(status int, mediaType string) (body []byte, contentType string) {
	ok := status == http.StatusOK
	// Neither has anything that cannot be encoded.
	if mediaType == typeProtobuf {
		if ok {
			body, _ = a.logsResponse().MarshalProto()
		} else {
			body, _ = proto.Marshal(&rpcstatus.Status{Message: a.messages()})
		}
		return body, typeProtobuf
	}
	if ok {
		body, _ = a.logsResponse().MarshalJSON()
	} else {
		body, _ = json.Marshal(map[string]string{"message": a.messages()})
	}
	return body, typeJSON
}
