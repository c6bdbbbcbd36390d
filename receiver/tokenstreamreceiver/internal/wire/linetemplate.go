// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"math"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// lineTemplate is the text of the last chunk line without its stream ID and time. A
// sender formats all its chunks the same way, so most lines equal the template
// except for these two values. Comparing text is faster than parsing members.
//
// A line that matches has the members of the template's line, because both values
// end where the template's text goes on: the ID contains only plain bytes and is
// followed by its quote; the time has nineteen digits and is followed by a quote, a
// comma or the closing brace.
//
// The text consists of what a fastChunk accepts: known names, tokens, channel and
// blanks. So a template is short and never contains text of a prompt or answer.
type lineTemplate struct {
	learned bool

	// The head of a line is its event, stream ID and time. The time comes last.
	prefix []byte // before the ID
	middle []byte // from the ID to the digits of the time
	quoted bool   // the time is a string

	// tail is the text after the digits of the time. It is empty if the line had a
	// sequence number, which differs on every line.
	tail    []byte
	tokens  uint32
	channel timeline.Channel
}

// matchHead reads the stream ID and the time of a line with the head of the
// template. tail is the rest of the line, and empty if the line does not match or
// ends there.
func (t *lineTemplate) matchHead(line []byte) (id []byte, unixNano int64, tail []byte) {
	if !bytes.HasPrefix(line, t.prefix) {
		return nil, 0, nil
	}
	rest := line[len(t.prefix):]
	length := plainLength(rest)
	id, rest = rest[:length], rest[length:]
	if !bytes.HasPrefix(rest, t.middle) {
		return nil, 0, nil
	}
	rest = rest[len(t.middle):]
	at := nineteenDigits(rest)
	if at < leastNineteen || at > math.MaxInt64 {
		return nil, 0, nil
	}
	return id, int64(at), rest[mostDigits:]
}

// learn stores a parsed line: its ID is line[idStart:idEnd], and its head ends at
// headEnd with the time.
func (t *lineTemplate) learn(line []byte, idStart, idEnd, headEnd int, chunk *assembly.Chunk) {
	if chunk.UnixNano < leastNineteen {
		return
	}
	t.quoted = line[headEnd-1] == '"'
	if t.quoted {
		headEnd--
	}
	t.prefix = append(t.prefix[:0], line[:idStart]...)
	t.middle = append(t.middle[:0], line[idEnd:headEnd-mostDigits]...)
	t.learned = true
	t.learnTail(line[headEnd:], chunk)
}

func (t *lineTemplate) learnTail(tail []byte, chunk *assembly.Chunk) {
	t.tail = t.tail[:0]
	if !chunk.Numbered {
		t.tail = append(t.tail, tail...)
		t.tokens, t.channel = chunk.Tokens, chunk.Channel
	}
}
