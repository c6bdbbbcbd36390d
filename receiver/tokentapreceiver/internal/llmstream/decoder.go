// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"slices"
	"strings"
)

// Decoder reads the body of one answer as it passes and reports each chunk that carries tokens or audio.
// It is not safe for concurrent use.
type Decoder struct {
	head   AnswerHead
	limits Limits
	start  []byte // the first bytes, until the framing is known

	// Each event needs the following, side by side in memory.
	chunk  func(Chunk)
	format *answerFormat
	read   eventReader // nil until an event shows the format
	time   int64
	room   int // bytes that are read before the format is known; 0 without a limit
	tried  int
	shared bool // the path does not decide on the format
	byPath bool // the path alone decided on it
	gaveUp bool // no format was recognised: nothing more is parsed
	noBOM  bool
	gap    bool // an event was skipped as too long
	framer bodyFramer
	pieces pieceReader // of an answer without events, or nil
	sse    sseFramer   // the framer of most answers
	known  familiar
	record record
}

// maxStart is the number of first bytes that decide on the framing.
const maxStart = 6

// maxTries is the number of events that may pass before the format is recognised.
const maxTries = 16

// maxUntracked is the number of first bytes that have to show the format, if no format has the path.
const maxUntracked = 64 << 10

// NewDecoder returns a decoder of one answer. It calls chunk, which may be nil, for each
// chunk that carries tokens or audio.
func NewDecoder(head AnswerHead, limits Limits, chunk func(Chunk)) *Decoder {
	d := &Decoder{head: head, limits: limits, chunk: chunk, known: familiar{memory: limits.Memory}}
	i := pathFacts(head.Path, head.RawQuery)
	d.record.observation.Replayed, d.shared = i.replays, i.shared
	d.setFormat(i.format)
	d.pieces = d.unframed()
	if i.format == noFormat {
		d.room = maxUntracked
	}
	return d
}

func (d *Decoder) setFormat(f *answerFormat) { d.format, d.record.observation.Format = f, f.name }

// Write takes the bytes of one read, which returned at the time in Unix nanoseconds.
// The bytes are decoded content: without transfer and content encoding.
func (d *Decoder) Write(p []byte, time int64) {
	d.time = time
	if d.pieces != nil {
		d.piece(p)
		return
	}
	if d.read == nil && d.room > 0 {
		n := min(len(p), d.room)
		d.write(p[:n])
		p = p[n:]
		d.room -= n
		d.gaveUp = d.gaveUp || d.room == 0 && d.read == nil
	}
	d.write(p)
	if d.gaveUp && d.framer != nil {
		d.framer.release()
		d.framer = nil
	}
}

func (d *Decoder) write(p []byte) {
	if d.framer == nil && !d.gaveUp {
		p = d.sniff(p)
	}
	if d.framer != nil && !d.gaveUp {
		d.framer.write(p, d)
	}
}

// GaveUp reports whether nothing more is read, because no format was recognised.
func (d *Decoder) GaveUp() bool { return d.gaveUp }

// End says that the answer ended.
func (d *Decoder) End(time int64) {
	d.time = time
	if d.framer == nil && !d.gaveUp && len(d.start) > 0 {
		d.choose()
		if d.framer != nil && !d.gaveUp {
			d.framer.write(d.start, d)
		}
	}
	if d.framer != nil && !d.gaveUp {
		d.framer.end(d)
	}
	if d.pieces != nil {
		d.pieces.end(&d.record)
	}
	o := &d.record.observation
	if d.read == nil && o.Error == "" {
		d.setFormat(noFormat)
	}
	if o.Events == 0 {
		o.Foreign = len(d.start) > 0 && (!o.Streamed || d.sse.foreign)
	} else {
		o.Foreign = d.read == nil && !o.Ended || d.byPath && o.saysNothing() && !d.record.known
	}
	o.Pending = o.Pending && !o.Streamed // the last event of a stream has no other status
	if o.Format != "" && !o.Streamed && !o.Unframed {
		o.Ended = o.Events > 0 && !o.Unparsed.Tail
	} else if d.format.finishEnds && d.record.allFinished() {
		o.Ended = o.Ended || o.Events > 0 && !o.Unparsed.Tail
	}
	if o.Model == "" && d.format.modelOf != nil {
		o.Model = d.format.modelOf(d.head.Path)
	}
	d.record.close()
	readHeader(d.head.Header, o)
}

// Observation returns what the answer reported so far, and all of it after End.
func (d *Decoder) Observation() Observation {
	o := d.record.observation
	o.Guessed = d.read == nil && d.shared
	return o
}

// sniff collects the first bytes, without byte order mark and blanks, and chooses the
// framer. It returns the bytes that the framer has to read.
func (d *Decoder) sniff(p []byte) []byte {
	for i, c := range p {
		if len(d.start) == 0 && strings.IndexByte(" \t\r\n", c) >= 0 {
			continue
		}
		if d.start = append(d.start, c); !d.noBOM && bytes.HasPrefix(d.start, []byte("\xef\xbb\xbf")) {
			d.start, d.noBOM = d.start[:0], true
			continue
		}
		if strings.IndexByte("{[:", d.start[0]) >= 0 || len(d.start) == maxStart {
			d.choose()
			if i++; i < len(p) {
				return append(d.start, p[i:]...)
			}
			return d.start
		}
	}
	return nil
}

// MayBeLLM reports whether the answer may be one of an LLM: a format has the path, or the request succeeded
// and the content type is that of a stream.
func (h AnswerHead) MayBeLLM() bool {
	if pathFacts(h.Path, h.RawQuery).format != noFormat {
		return true
	}
	mediaType := strings.ToLower(h.ContentType)
	isStream := func(part string) bool { return strings.Contains(mediaType, part) }
	return h.Status >= 200 && h.Status < 300 && (isStream("event-stream") || isStream("amazon.eventstream") || slices.ContainsFunc(mediaTypeLines, isStream))
}

var mediaTypeLines = []string{"ndjson", "jsonl", "json-lines", "stream+json", "json-seq"}

// choose picks the framer by content type and first bytes. The content type alone says
// little: there are SSE bodies under application/json and JSON errors under
// text/event-stream.
func (d *Decoder) choose() {
	mediaType := strings.ToLower(d.head.ContentType)
	o := &d.record.observation
	switch first := d.start[0]; {
	case strings.Contains(mediaType, "amazon.eventstream") && first != '{', first == 0 && len(d.start) > 1 && d.start[1] == 0:
		o.Streamed = true
		d.framer = &awsFramer{frame: d.limits.buffer()}
	case first == '{':
		for _, lines := range mediaTypeLines {
			if strings.Contains(mediaType, lines) {
				d.framer = &linesFramer{line: d.limits.jsonBuffer()}
				o.Streamed = true
				return
			}
		}
		d.framer = &documentFramer{text: d.limits.jsonBuffer()}
	case first == '[':
		d.framer = &documentFramer{text: d.limits.jsonBuffer()}
	case strings.Contains(mediaType, "event-stream"), isSSE(d.start):
		o.Streamed = true
		d.sse = newSSEFramer(d.limits)
		d.framer = &d.sse
	default:
		d.gaveUp = true
	}
}

// isSSE reports whether start is the beginning of an SSE field or comment.
func isSSE(start []byte) bool {
	for _, field := range []string{":", "data:", "event:", "id:", "retry:"} {
		if bytes.HasPrefix(start, []byte(field[:min(len(field), len(start))])) {
			return true
		}
	}
	return false
}

func (d *Decoder) tooLong() {
	d.gap = true
	d.count(&d.record.observation.Events)
	d.count(&d.record.observation.Unparsed.TooLong)
}
func (d *Decoder) invalid() { d.count(&d.record.observation.Unparsed.Invalid) }
func (d *Decoder) corrupt() { d.count(&d.record.observation.Unparsed.Corrupt) }
func (d *Decoder) tail()    { d.record.observation.Unparsed.Tail = true }

// count adds one to a counter. The framer finishes the current read after the decoder
// has given up: what it finds does not count, like that of later reads.
func (d *Decoder) count(n *int64) {
	if !d.gaveUp {
		*n++
	}
}

// event reads one event and reports its chunk.
func (d *Decoder) event(e event) {
	if d.gaveUp {
		return
	}
	r := &d.record
	r.begin()
	if e.stray {
		// Only an error is believed outside the framing.
		if v, ok := parse(e.data); ok {
			readError(e, v, d.head.Status, r)
		}
		return
	}
	o := &r.observation
	index := o.Events
	o.Events++
	if d.known.is(e) {
		if r.eventFacts = d.known.facts; r.lastIsAudio {
			r.event = e
			r.audioAgain(d.known.textOf(e))
		}
	} else {
		r.event = e
		d.parse(e)
	}
	if d.gaveUp {
		return
	}
	if f, ok := d.framer.(*documentFramer); ok {
		if f.array {
			o.Streamed = d.format.arrayStreams
		} else if index == 1 {
			o.Streamed = true // JSON lines under another content type
		}
	}
	d.report(index)
}

// report reports the chunk of the current event.
func (d *Decoder) report(index int64) {
	if c, ok := d.record.take(); ok && d.chunk != nil {
		c.Time, c.Index, c.AfterGap = d.time, index, d.gap
		d.chunk(c)
	}
}

// parse reads an event's JSON. Lines of data that miss the blank line between them
// arrive as one event of several JSON texts.
func (d *Decoder) parse(e event) {
	if isDone(e.data) {
		d.record.end()
		return
	}
	if e.exception {
		d.record.fail(cut(e.name))
		return
	}
	if d.read == nil {
		for _, f := range formats {
			if f.plainText != nil && f.plainText(e) {
				d.readAs(f)
			}
		}
	}
	if d.format.plainText != nil && string(e.name) != "error" {
		d.read(e, nil, &d.record)
		return
	}
	if v, ok := parse(e.data); ok {
		d.value(e, v)
		d.known.learn(e, &d.record)
		return
	}
	isError := string(e.name) == "error" || saysError(e.data)
	switch {
	case isError:
		d.record.fail("") // it may be plain text, or one of the lines may have its type
	case len(bytes.TrimSpace(e.data)) == 0:
		return // some keep a connection alive with an empty event
	}
	lines := bytes.Split(e.data, []byte("\n"))
	for _, line := range lines {
		if v, ok := parse(line); ok {
			d.record.choice()
			d.value(e, v)
		} else if !isError && (len(lines) == 1 || !isDone(line)) {
			d.invalid()
		}
	}
}

func (d *Decoder) value(e event, v value) {
	if status := v.get("status"); status != nil {
		d.record.observation.Pending = isPending(status)
	}
	readError(e, v, d.head.Status, &d.record)
	if d.read == nil && !d.gaveUp {
		d.recognise(e, v)
	}
	if d.read != nil {
		d.read(e, v, &d.record)
		d.record.look(v)
	}
}

// recognise decides on the format. What the answer looks like outweighs the path:
// servers of different formats share paths.
func (d *Decoder) recognise(e event, v value) {
	switch f := formatOf(e, v); {
	case f == notLLM:
		d.gaveUp = true
	case f != noFormat && !d.format.wraps:
		d.readAs(f)
	case d.format == noFormat || d.record.observation.Error != "" || d.shared:
		d.tried++
		d.gaveUp = d.tried == maxTries
	default:
		d.byPath = true
		d.readAs(d.format)
	}
}

func (d *Decoder) readAs(f *answerFormat) {
	d.setFormat(f)
	d.read = f.newReader()
	if asked := d.head.Asked; asked != nil {
		d.record.byteRate = byteRate([]byte(asked.AudioFormat), 0)
	}
}
