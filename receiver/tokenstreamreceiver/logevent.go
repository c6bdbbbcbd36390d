package tokenstreamreceiver

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/attribute"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// logEvent is a log record that is a token event. Nothing looks at its body.
type logEvent struct {
	name   string
	record plog.LogRecord
}

// toLogEvent reports whether a record is a token event.
func toLogEvent(record plog.LogRecord) (logEvent, bool) {
	e := logEvent{record.EventName(), record}
	if e.name == "" {
		if name, ok := record.Attributes().Get(names.LogEventName); ok {
			e.name = name.Str()
		}
	}
	switch e.name {
	case names.LogTokenGenerated, names.LogCompletionChunk, names.LogCompletionChunkOfLLM, names.LogContentChunk, names.LogStreamedChunk:
		return e, true
	}
	return e, e.isOurs()
}

// isOurs reports whether the event is one that has the fields of NDJSON.
func (e *logEvent) isOurs() bool {
	switch e.name {
	case names.LogStreamStart, names.LogStreamScheduled, names.LogStreamChunk, names.LogStreamEnd:
		return true
	}
	return false
}

// isFrame reports whether the event is a chunk that may hold no token: others log
// one for each part of an answer, also for those that tell a role or the usage.
func (e *logEvent) isFrame() bool { return !e.isOurs() && e.name != names.LogTokenGenerated }

// encodedList is a list of attributes, encoded when it is asked for.
type encodedList func() ([]byte, error)

// add adds the event to the batch, or returns why it cannot.
func (e *logEvent) add(batch *assembly.Batch, resource encodedList) error {
	id, err := e.streamID()
	if err != nil {
		return err
	}
	at, err := e.time()
	if err != nil {
		return err
	}
	part, err := batch.Part([]byte(id))
	if err != nil {
		return err
	}
	switch e.name {
	case names.LogStreamStart:
		err = e.addStart(part, at, resource)
	case names.LogStreamScheduled:
		err = part.AddScheduled(at)
	case names.LogStreamEnd:
		err = e.addEnd(part, at)
	default:
		err = e.addChunk(part, at, resource)
	}
	if err != nil {
		return err
	}
	part.Count(0)
	return nil
}

// streamID names the stream after the span that the record was logged in.
func (e *logEvent) streamID() (string, error) {
	trace, span := e.record.TraceID(), e.record.SpanID()
	switch {
	case !trace.IsEmpty() && !span.IsEmpty():
		return trace.String() + "/" + span.String(), nil
	case !e.isOurs():
		return "", invalid("a record %s needs a trace_id and a span_id, which tell its stream: log it in the span of its request", e.name)
	}
	id, err := e.text(names.LogStreamID)
	if err == nil && id == "" {
		err = invalid("a record %s needs a trace_id and a span_id, which tell its stream: log it in the span of its request, or give it the attribute %s",
			e.name, names.LogStreamID)
	}
	return id, err
}

func (e *logEvent) time() (int64, error) {
	switch {
	case e.record.Timestamp() != 0:
		return int64(e.record.Timestamp()), nil
	case e.record.ObservedTimestamp() != 0:
		return int64(e.record.ObservedTimestamp()), nil
	default:
		return 0, invalid("time_unix_nano is missing, and so is observed_time_unix_nano")
	}
}

func (e *logEvent) addStart(part *assembly.Part, at int64, resource encodedList) error {
	start, attributes, shared, err := e.start(resource)
	if err != nil {
		return err
	}
	start.UnixNano = at
	return part.AddStart(start, attributes, shared)
}

// addChunk adds a chunk, which starts its stream if nothing else does.
func (e *logEvent) addChunk(part *assembly.Part, at int64, resource encodedList) error {
	chunk, err := e.chunk()
	if err != nil {
		return err
	}
	if !part.HasStart() {
		start, attributes, shared, err := e.start(resource)
		if err != nil {
			return err
		}
		if err := part.ImplyStart(start, attributes, shared); err != nil {
			return err
		}
	}
	chunk.UnixNano = at
	if err := part.AddChunk(chunk); err != nil {
		return err
	}
	if e.isFrame() && chunk.Tokens > 0 {
		part.Frames = true
	}
	return nil
}

// start returns how the record's stream starts, but for the time. The stream is a
// child of the record's span, unless the event says otherwise.
func (e *logEvent) start(resource encodedList) (start assembly.Start, attributes, shared []byte, err error) {
	start.TraceID = e.record.TraceID()
	start.ParentSpanID = e.record.SpanID()
	if e.isOurs() {
		if err := e.ourStart(&start); err != nil {
			return start, nil, nil, err
		}
	}
	if attributes, err = e.startAttributes(); err != nil {
		return start, nil, nil, err
	}
	shared, err = resource()
	return start, attributes, shared, err
}

func (e *logEvent) ourStart(start *assembly.Start) error {
	if e.record.TraceID().IsEmpty() {
		if err := e.id(start.TraceID[:], names.LogTraceID); err != nil {
			return err
		}
	}
	if err := e.id(start.SpanID[:], names.LogSpanID); err != nil {
		return err
	}
	if start.SpanID == start.ParentSpanID { // logged in that very span
		start.ParentSpanID = [8]byte{}
	}
	if err := e.id(start.ParentSpanID[:], names.LogParentSpanID); err != nil {
		return err
	}
	vantage, err := e.text(names.LogVantage)
	if err != nil {
		return err
	}
	switch vantage {
	case "":
	case names.VantageClient:
		start.Vantage = assembly.VantageClient
	case names.VantageGateway:
		start.Vantage = assembly.VantageGateway
	case names.VantageServer:
		start.Vantage = assembly.VantageServer
	case names.VantageEngine:
		start.Vantage = assembly.VantageEngine
	default:
		start.Vantage = math.MaxUint8 // which the part turns down
	}
	return nil
}

// startAttributes returns those of the record that a span may have, and those of
// the field attributes.
func (e *logEvent) startAttributes() ([]byte, error) {
	attributes := pcommon.NewMap()
	for key, value := range e.record.Attributes().All() {
		if isSpanAttribute(key, value) && attributes.Len() <= maxAttributes {
			value.CopyTo(attributes.PutEmpty(key))
		}
	}
	if !e.isOurs() {
		return encodeKeyValues(attributes)
	}
	list, err := encodeKeyValues(attributes)
	if err != nil {
		return nil, err
	}
	more, err := e.attributes()
	return append(list, more...), err
}

// isSpanAttribute reports whether an attribute of a record is one for a span.
// Prompts are in records too, under names old and new, and so only what is known
// to be something else is taken.
func isSpanAttribute(key string, value pcommon.Value) bool {
	switch key {
	case names.GenAIProviderName, names.GenAISystem, names.GenAIOperationName:
		return isPlain(value)
	}
	request, ok := strings.CutPrefix(key, names.PrefixGenAIRequest)
	return ok && !namesText(request) && isPlain(value)
}

// namesText reports whether a name is one of those that text goes by.
func namesText(name string) bool {
	for word := range strings.SplitSeq(name, ".") {
		switch word {
		case "text", "content", "delta", "message", "messages", "prompt", "prompts", "input", "instructions", "system_instructions":
			return true
		}
	}
	return false
}

// isPlain reports whether a value is no map, and no list of more than plain
// values: messages come as such.
func isPlain(value pcommon.Value) bool {
	switch value.Type() {
	case pcommon.ValueTypeMap:
		return false
	case pcommon.ValueTypeSlice:
		for _, element := range value.Slice().All() {
			if element.Type() == pcommon.ValueTypeMap || element.Type() == pcommon.ValueTypeSlice {
				return false
			}
		}
	}
	return true
}

func (e *logEvent) chunk() (assembly.Chunk, error) {
	chunk := assembly.Chunk{Tokens: 1}
	if value, there := e.field(names.LogTokens); there {
		switch tokens, ok := attribute.Integer(value); {
		case ok && tokens >= 0 && tokens <= timeline.MaxTokensPerChunk:
			chunk.Tokens = uint32(tokens)
		case ok || e.isOurs(): // that of others may mean something else
			return chunk, assembly.ErrTokens
		}
	}
	if !e.isOurs() {
		return chunk, nil
	}
	channel, err := e.text(names.LogChannel)
	if err != nil {
		return chunk, err
	}
	switch channel {
	case "", "content":
	case "reasoning":
		chunk.Channel = timeline.Reasoning
	case "tool_call":
		chunk.Channel = timeline.ToolCall
	default:
		return chunk, invalid("channel must be content, reasoning or tool_call")
	}
	if value, there := e.field(names.LogSeq); there {
		seq, ok := attribute.Integer(value)
		if !ok || seq < 0 {
			return chunk, invalid("seq must be an integer, zero or more")
		}
		chunk.Seq, chunk.Numbered = uint64(seq), true
	}
	return chunk, nil
}

func (e *logEvent) addEnd(part *assembly.Part, at int64) (err error) {
	end := assembly.End{UnixNano: at}
	if end.Usage, err = e.usage(); err != nil {
		return err
	}
	if end.FinishReason, err = e.finishReason(); err != nil {
		return err
	}
	if end.Error, err = e.text(names.LogError); err != nil {
		return err
	}
	if end.Cancelled, err = e.cancelled(); err != nil {
		return err
	}
	attributes, err := e.attributes()
	if err != nil {
		return err
	}
	return part.AddEnd(end, attributes)
}

// finishReason reads the reason, or the first of a list of them.
func (e *logEvent) finishReason() (string, error) {
	value, there := e.field(names.LogFinishReason)
	if !there || value.Type() == pcommon.ValueTypeSlice && value.Slice().Len() == 0 {
		return "", nil
	}
	if value.Type() == pcommon.ValueTypeSlice {
		return textOf(names.LogFinishReason, value.Slice().At(0))
	}
	reason, err := textOf(names.LogFinishReason, value)
	if first, ok := firstInJSON(reason); ok {
		reason = first
	}
	return reason, err
}

// firstInJSON reads the first of a list of texts that is written as JSON. It is
// empty if the list is.
func firstInJSON(list string) (first string, ok bool) {
	decoder := jsontext.NewDecoder(strings.NewReader(list))
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

func (e *logEvent) cancelled() (bool, error) {
	value, there := e.field(names.LogCancelled)
	switch {
	case !there:
		return false, nil
	case value.Type() == pcommon.ValueTypeBool:
		return value.Bool(), nil
	case value.Type() == pcommon.ValueTypeStr:
		if cancelled, err := strconv.ParseBool(value.Str()); err == nil {
			return cancelled, nil
		}
	}
	return false, invalid("cancelled must be true or false")
}

// usage reads the reported counts, from a map or from attributes of their own.
func (e *logEvent) usage() (usage assembly.Usage, err error) {
	reported := pcommon.NewMap()
	if value, there := e.field(names.LogUsage); there {
		if value.Type() != pcommon.ValueTypeMap {
			return usage, invalid("usage must be a map of token counts")
		}
		reported = value.Map()
	}
	for _, count := range [...]struct {
		name string
		to   *assembly.Count
	}{
		{names.LogInputTokens, &usage.Input},
		{names.LogOutputTokens, &usage.Output},
		{names.LogReasoningTokens, &usage.Reasoning},
		{names.LogCachedInputTokens, &usage.CachedInput},
	} {
		value, there := field(reported, count.name)
		if !there {
			value, there = e.field(names.LogUsage + "." + count.name)
		}
		if !there {
			continue
		}
		if count.to.N, count.to.Known = attribute.Integer(value); !count.to.Known {
			return usage, invalid("usage.%s must be between 0 and %d", count.name, assembly.MaxCount)
		}
	}
	return usage, nil
}

// attributes encodes the field of that name.
func (e *logEvent) attributes() ([]byte, error) {
	value, there := e.field(names.LogAttributes)
	if !there {
		return nil, nil
	}
	if value.Type() != pcommon.ValueTypeMap {
		return nil, invalid("attributes must be a map")
	}
	return encodeKeyValues(value.Map())
}

// id reads a trace or span id, if there is one.
func (e *logEvent) id(dst []byte, name string) error {
	text, err := e.text(name)
	if err != nil || text == "" {
		return err
	}
	id, err := hex.DecodeString(text)
	if err != nil || len(id) != len(dst) || strings.Trim(text, "0") == "" {
		return invalid("%s must be a string of %d hexadecimal digits that are not all zero", name, 2*len(dst))
	}
	copy(dst, id)
	return nil
}

// text reads a field that is a string, empty if it is not there.
func (e *logEvent) text(name string) (string, error) {
	value, there := e.field(name)
	if !there {
		return "", nil
	}
	return textOf(name, value)
}

func textOf(name string, value pcommon.Value) (string, error) {
	if value.Type() != pcommon.ValueTypeStr || !utf8.ValidString(value.Str()) {
		return "", invalid("%s must be a string, in UTF-8", name)
	}
	return value.Str(), nil
}

func (e *logEvent) field(name string) (pcommon.Value, bool) {
	return field(e.record.Attributes(), name)
}

// field returns a value that is there and is something.
func field(fields pcommon.Map, name string) (pcommon.Value, bool) {
	value, there := fields.Get(name)
	return value, there && value.Type() != pcommon.ValueTypeEmpty
}
