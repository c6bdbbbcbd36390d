// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"math"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// lineTemplate is the text of the last scanned chunk line without the values that differ
// from line to line. A sender formats all its chunks the same way, so most lines equal the
// template except for these values. Without it, BenchmarkNDJSON takes three times the CPU time.
//
// A line that matches has the members of the template's line, because a value ends where
// the template's text goes on: an ID or a channel contains only plain bytes and is followed
// by its quote, and a number is followed by a quote, a comma, a blank or the closing brace.
//
// The template learns only from lines of known members. So it is short and never contains
// text of a prompt or answer.
type lineTemplate struct {
	text   []byte
	values []templateValue // in the order of the line

	// The first lines of a sender show which of tokens and channel differ. A value that
	// does not is part of the text.
	tokens  uint32
	channel timeline.Channel
	differ  uint32 // has a bit for each field of values
}

// templateValue is a value left out of the template's text.
type templateValue struct {
	field fieldIndex
	at    int // position in the text
}

const (
	// alwaysDiffer has a bit for each field that differs from line to line.
	alwaysDiffer uint32 = 1<<fieldStreamID | 1<<fieldTimeUnixNano | 1<<fieldSeq
	// templateFields has a bit for each field that a template's line can have.
	templateFields = alwaysDiffer | 1<<fieldEvent | 1<<fieldTokens | 1<<fieldChannel
)

// match reads a line that equals the template except for the values: the stream ID and,
// into a zero chunk, the others.
func (t *lineTemplate) match(line []byte, chunk *assembly.Chunk) (id []byte, ok bool) {
	chunk.Tokens, chunk.Channel = t.tokens, t.channel
	rest, from := line, 0
	for i := range t.values {
		v := &t.values[i]
		text := t.text[from:v.at]
		if !bytes.HasPrefix(rest, text) {
			return nil, false
		}
		rest, from = rest[len(text):], v.at
		var number uint64
		ok = true
		switch v.field {
		case fieldStreamID:
			id, rest = plainText(rest)
		case fieldTimeUnixNano:
			number, rest = integer(rest)
			chunk.UnixNano, ok = int64(number), number <= math.MaxInt64
		case fieldSeq:
			chunk.Seq, rest = integer(rest)
			chunk.Numbered = true
		case fieldTokens:
			number, rest = integer(rest)
			chunk.Tokens, ok = uint32(number), number <= math.MaxUint32
		case fieldChannel:
			var name []byte
			name, rest = plainText(rest)
			chunk.Channel, ok = timeline.ParseChannel(name)
		}
		if !ok {
			return nil, false
		}
	}
	return id, len(rest) > 0 && bytes.Equal(rest, t.text[from:])
}

// plainText returns the plain bytes that text starts with and the text after them.
func plainText(text []byte) (plain, rest []byte) {
	length := plainLength(text)
	return text[:length], text[length:]
}

// integer is leadingDigits for text of JSON: rest is also nil if the integer has a leading
// zero, which JSON forbids.
func integer(text []byte) (n uint64, rest []byte) {
	n, rest = leadingDigits(text)
	if len(text)-len(rest) > 1 && text[0] == '0' {
		return 0, nil
	}
	return n, rest
}

// maxTemplateLine bounds the memory of a template: a line can have many blanks.
const maxTemplateLine = 512

// learn makes a template of a line that n has scanned and decoded.
func (t *lineTemplate) learn(line []byte, n *NDJSON) {
	if !n.usual || n.present&^templateFields != 0 || len(line) > maxTemplateLine || string(n.fields[fieldEvent].raw) != `"chunk"` {
		return
	}
	t.differ |= alwaysDiffer
	if len(t.text) > 0 && t.tokens != n.last.Tokens {
		t.differ |= 1 << fieldTokens
	}
	if len(t.text) > 0 && t.channel != n.last.Channel {
		t.differ |= 1 << fieldChannel
	}
	t.tokens, t.channel = n.last.Tokens, n.last.Channel
	t.text, t.values = t.text[:0], t.values[:0]
	from := 0
	for _, field := range n.order {
		value := &n.fields[field]
		if t.differ&(1<<field) == 0 || value.kind == 'n' {
			continue
		}
		start, end := value.at, value.at+len(value.raw)
		if value.kind == '"' {
			start, end = start+1, end-1
		}
		t.text = append(t.text, line[from:start]...)
		t.values = append(t.values, templateValue{field, len(t.text)})
		from = end
	}
	t.text = append(t.text, line[from:]...)
}
