// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// fastChunk is the fast path of NDJSON. It parses chunk lines in the usual form: a
// few known members, no escape sequences, no white space except for one blank after
// a colon or a comma. A line that matches the lineTemplate is not parsed at all.
//
// It compares the first eight bytes of a member at once, with quotes and colon,
// because that is one machine instruction, and reads strings and digits eight bytes
// at a time (swar.go).
//
// It reports no errors. It leaves all other lines to the slow path,
// which starts over, so that errors and rare forms are handled in one place.
type fastChunk struct {
	id    []byte // of the stream
	chunk assembly.Chunk
	// Number of bytes from the ID, and after the head (see lineTemplate), to the
	// end of the line. afterHead is zero if the line has no head to learn.
	fromID, afterHead int
}

// headFields has a bit for each field of a line's head.
const headFields uint32 = 1<<fieldEvent | 1<<fieldStreamID | 1<<fieldTimeUnixNano

// read parses a line. It reports false, and leaves c undefined, for lines of the slow
// path. The template is that of the previous lines and learns this one. c must be
// zero.
func (c *fastChunk) read(line []byte, template *lineTemplate) bool {
	c.chunk.Tokens = 1
	if template.learned {
		if id, at, tail := template.matchHead(line); len(tail) > 0 {
			c.id, c.chunk.UnixNano = id, at
			return c.readTail(tail, template)
		}
	}
	if len(line) == 0 || line[0] != '{' || !c.readMembers(line[1:], 0) {
		return false
	}
	if c.afterHead > 0 {
		id := len(line) - c.fromID
		template.learn(line, id, id+len(c.id), len(line)-c.afterHead, &c.chunk)
	}
	return true
}

// readTail reads what follows the head of a line. A tail other than the template's is
// parsed and learned.
func (c *fastChunk) readTail(tail []byte, template *lineTemplate) bool {
	if bytes.Equal(tail, template.tail) {
		c.chunk.Tokens, c.chunk.Channel = template.tokens, template.channel
		return true
	}
	rest := tail
	if template.quoted {
		if rest[0] != '"' {
			return false
		}
		rest = rest[1:]
	}
	if len(rest) == 0 || rest[0] != ',' {
		return string(rest) == "}"
	}
	if !c.readMembers(skipBlank(rest[1:]), headFields) {
		return false
	}
	template.learnTail(tail, &c.chunk)
	return true
}

// readMembers parses the rest of a line from the name of a member on. seen has a bit
// for each field before it.
func (c *fastChunk) readMembers(rest []byte, seen uint32) bool {
	for ; ; rest = skipBlank(rest[1:]) {
		var field fieldIndex
		field, rest = c.member(rest)
		if len(rest) == 0 || seen&(1<<field) != 0 {
			return false
		}
		seen |= 1 << field
		switch {
		case field == fieldStreamID:
			c.fromID = len(c.id) + len(`"`) + len(rest)
		case seen == headFields && field == fieldTimeUnixNano:
			c.afterHead = len(rest)
		}
		if rest[0] != ',' {
			return string(rest) == "}" && isChunk(seen)
		}
	}
}

// isChunk reports whether a line with these fields can be a chunk.
func isChunk(seen uint32) bool {
	const needed, times = 1<<fieldEvent | 1<<fieldStreamID, 1<<fieldTimeUnixNano | 1<<fieldTime
	time := seen & times
	return seen&needed == needed && time != 0 && time != times
}

// member reads the member that text starts with. rest is the text after it, and empty
// for members of the slow path.
func (c *fastChunk) member(text []byte) (field fieldIndex, rest []byte) {
	const shortest = len(`"seq":0}`)
	if len(text) < shortest {
		return 0, nil
	}
	switch head, tail := text[:8], text[8:]; {
	case string(head) == `"event":`:
		return fieldEvent, skipChunk(skipBlank(tail))
	case string(head) == `"stream_` && len(tail) >= 4 && string(tail[:4]) == `id":`:
		c.id, rest = plainString(skipBlank(tail[4:]))
		return fieldStreamID, rest
	case string(head) == `"time_un` && len(tail) >= 9 && string(tail[:9]) == `ix_nano":`:
		return fieldTimeUnixNano, c.unixNano(skipBlank(tail[9:]))
	case string(head) == `"tokens"` && len(tail) >= 1 && tail[0] == ':':
		return fieldTokens, c.tokens(skipBlank(tail[1:]))
	case string(head) == `"channel` && len(tail) >= 2 && string(tail[:2]) == `":`:
		return fieldChannel, c.channel(skipBlank(tail[2:]))
	case string(head[:6]) == `"seq":`:
		c.chunk.Numbered = true
		c.chunk.Seq, rest = integer(skipBlank(text[6:]))
		return fieldSeq, rest
	case string(head[:7]) == `"time":`:
		return fieldTime, c.time(skipBlank(text[7:]))
	default:
		return 0, nil
	}
}

func skipBlank(text []byte) []byte {
	if len(text) > 0 && text[0] == ' ' {
		return text[1:]
	}
	return text
}

func skipChunk(text []byte) (rest []byte) {
	if len(text) > 7 && string(text[:7]) == `"chunk"` {
		return text[7:]
	}
	return nil
}

func (c *fastChunk) unixNano(text []byte) (rest []byte) {
	at, rest := integer(text)
	c.chunk.UnixNano = int64(at)
	if c.chunk.UnixNano < 0 { // out of range
		return nil
	}
	return rest
}

func (c *fastChunk) time(text []byte) (rest []byte) {
	at, rest := plainString(text)
	var err error
	if c.chunk.UnixNano, err = parseTime(at); err != nil {
		return nil
	}
	return rest
}

func (c *fastChunk) tokens(text []byte) (rest []byte) {
	if len(text) > 1 && text[0] == '1' && text[1] == ',' { // the usual value
		return text[1:]
	}
	tokens, rest := integer(text)
	if tokens > timeline.MaxTokensPerChunk {
		return nil
	}
	c.chunk.Tokens = uint32(tokens)
	return rest
}

func (c *fastChunk) channel(text []byte) (rest []byte) {
	name, rest := plainString(text)
	var ok bool
	if c.chunk.Channel, ok = timeline.ParseChannel(name); !ok {
		return nil
	}
	return rest
}

// plainString reads the string that text starts with. rest is the text after it, and
// nil if the string has escape sequences or other bytes that are not plain.
func plainString(text []byte) (content, rest []byte) {
	if len(text) == 0 || text[0] != '"' {
		return nil, nil
	}
	content = text[1:]
	length := plainLength(content)
	if length == len(content) || content[length] != '"' {
		return nil, nil
	}
	return content[:length], content[length+1:]
}

// integer reads the non-negative integer that text starts with: a number or a string
// of digits. rest is the text after it, and nil if text starts with another value or
// has too many digits.
func integer(text []byte) (n uint64, rest []byte) {
	quoted := len(text) > 0 && text[0] == '"'
	if quoted {
		text = text[1:]
	}
	n, rest = leadingDigits(text)
	switch {
	case quoted && len(rest) > 0 && rest[0] == '"':
		return n, rest[1:]
	case quoted || len(text)-len(rest) > 1 && text[0] == '0':
		return 0, nil
	default:
		return n, rest
	}
}
