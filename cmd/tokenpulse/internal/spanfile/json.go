// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

var (
	errNoObject   = errors.New("not a JSON object; expected one document in OTLP per line")
	errIncomplete = errors.New("the JSON document is incomplete")
	errNoSpans    = errors.New(`the JSON document has no "resourceSpans"`)
	errNoOTLP     = errors.New("the JSON document is not in OTLP: a field has a value of another type")
)

// jsonReader reads documents in JSON: one per line, or one over several lines.
type jsonReader struct {
	*reader
	lines lines
	open  []byte  // lines of a document that has not ended
	scan  scanner // of the document
	first int     // line of the document
	lost  bool    // the lines are of a damaged document
}

func (r *reader) readJSON() error {
	j := jsonReader{reader: r, lines: lines{in: r.file.Reader, limit: r.limit}}
	for {
		line, err := j.lines.next()
		if ended := r.ctx.Err(); ended != nil {
			return ended
		}
		switch {
		case err == nil:
			err = j.line(line)
		case errors.Is(err, errTooLarge):
			j.first = j.lines.number
			err = j.drop(errTooLarge)
		case errors.Is(err, io.EOF) && len(j.open) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return j.drop(errIncomplete)
		default:
			j.first = j.lines.number
			return j.drop(err)
		}
		if err != nil {
			return err
		}
	}
}

// line reads a line. Most lines are one document with spans, which needs no search for its
// end. The decoder ignores what follows a document, which must not be another one.
func (j *jsonReader) line(line []byte) error {
	if j.lines.number == 1 {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if j.lost && line[0] != '{' {
		return nil
	}
	j.lost = false
	line = bytes.TrimSpace(line)
	rest, ok := bytes.CutPrefix(line, beginOfSpans)
	if ok && len(j.open) == 0 && !bytes.Contains(rest, keyOfSpans) {
		if traces, err := decodeJSON(line); err == nil {
			return j.message(traces)
		}
	}
	return j.parts(line)
}

// parts reads a line with parts of documents. A Collector that was killed leaves one
// without an end, to which the next Collector appends.
func (j *jsonReader) parts(line []byte) error {
	for len(line) > 0 {
		if len(j.open) > 0 && bytes.HasPrefix(line, beginOfSpans) {
			if err := j.drop(errIncomplete); err != nil {
				return err
			}
		}
		document, rest, damage := j.take(line)
		if document != nil {
			var traces *ptrace.Traces
			if traces, damage = decodeJSON(document); damage == nil {
				if err := j.message(traces); err != nil {
					return err
				}
			}
		}
		if damage != nil {
			if err := j.drop(damage); err != nil {
				return err
			}
			rest = nil
			if last := bytes.LastIndex(line, beginOfSpans); last > 0 {
				rest = line[last:]
			}
		}
		line = rest
	}
	return nil
}

// take adds a line to the document. If the document ends, it returns it and the rest of the
// line.
func (j *jsonReader) take(line []byte) (document, rest []byte, damage error) {
	if len(j.open) == 0 {
		j.first, j.scan = j.lines.number, scanner{}
		if line[0] != '{' {
			return nil, nil, errNoObject
		}
	}
	end := j.scan.end(line)
	switch {
	case end < 0 && (j.scan.inString || bytes.LastIndex(line, beginOfSpans) > 0): // a string has no line breaks
		return nil, nil, errIncomplete
	case len(j.open)+len(line) > j.limit:
		return nil, nil, errTooLarge
	case end < 0:
		j.open = append(append(j.open, line...), '\n')
		return nil, nil, nil
	}
	document = line[:end]
	if len(j.open) > 0 {
		document = append(j.open, document...)
	}
	j.open = j.open[:0]
	return document, bytes.TrimSpace(line[end:]), nil
}

// drop reports the document as damaged, once for all its lines.
func (j *jsonReader) drop(damage error) error {
	j.lost = len(j.open) > 0
	j.open = j.open[:0]
	return j.damaged(fmt.Sprintf(":%d", j.first), damage)
}

// decodeJSON returns the spans of a document that begins with a brace, or nil of one with
// other signals. Its errors quote no more than a character: those of pdata quote the text
// around.
func decodeJSON(document []byte) (*ptrace.Traces, error) {
	key := firstKey(document)
	if slices.ContainsFunc(keysOfOthers, func(other []byte) bool { return bytes.Equal(other, key) }) {
		return nil, nil
	}
	if len(document) > shallowBytes {
		var scan scanner
		if scan.end(document); scan.deepest > maxDepth {
			return nil, errTooDeep
		}
	}
	traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(document)
	if err != nil {
		var syntax *json.SyntaxError
		if errors.As(json.Unmarshal(document, new(json.RawMessage)), &syntax) {
			return nil, fmt.Errorf("invalid JSON at byte %d: %w", syntax.Offset, syntax)
		}
		return nil, errNoOTLP
	}
	if traces.ResourceSpans().Len() == 0 && !bytes.Equal(key, keyOfSpans) && !bytes.HasPrefix(key, []byte("}")) {
		return nil, errNoSpans
	}
	return &traces, nil
}

// scanner finds the end of a document in JSON.
type scanner struct {
	depth    int // of brackets
	deepest  int
	inString bool
}

// end returns the index after the end of the document, or -1 if text does not have it. A
// string must not end in a later text.
func (s *scanner) end(text []byte) int {
	for i := 0; i < len(text); i++ {
		if s.inString {
			quote := bytes.IndexByte(text[i:], '"')
			if quote < 0 {
				return -1
			}
			i += quote
			s.inString = isEscaped(text[:i])
			continue
		}
		switch text[i] {
		case '"':
			s.inString = true
		case '{', '[':
			s.depth++
			s.deepest = max(s.deepest, s.depth)
		case '}', ']':
			if s.depth--; s.depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// isEscaped reports whether text ends with an odd number of backslashes.
func isEscaped(text []byte) bool {
	return (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 1
}
