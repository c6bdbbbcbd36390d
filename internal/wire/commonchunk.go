package wire

import (
	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Nearly all lines are chunks, and nearly all chunks are written alike: a few
// members in some order, nothing escaped, no white space but a blank behind a
// colon or a comma. A commonChunk reads those in one pass, straight into a Chunk.
// That is what it is for, and it explains its looks: a member's name is compared
// with its quotes and its colon, eight bytes at first, because that is one machine
// instruction; strings and digits are looked at eight bytes at a time (see
// words.go); and what is left to read is a slice that only gets shorter. A line
// that is written as the last one was has it easier still (see chunkform.go).
//
// It knows no errors. Whatever it is not sure of it leaves to the general reader,
// which starts the line over, so that what is wrong with a line, and what is
// merely rare, is said in one place only.

// commonChunk is what such a line says.
type commonChunk struct {
	id    []byte // of the stream
	chunk assembly.Chunk
	// How many bytes of the line are left from the id on, and behind the head (see
	// chunkForm), where its members were read by name and it has one.
	fromID, tail int
}

// read reads a line, or reports false if it has anything that is not common in
// chunks. Then the commonChunk is in no particular state. The form is that of the
// lines before, and becomes that of this one if it has one. c is zero to begin with.
func (c *commonChunk) read(line []byte, form *chunkForm) bool {
	c.chunk.Tokens = 1
	if form.learned {
		if tail := form.readHead(c, line); len(tail) > 0 {
			return form.readTail(c, tail)
		}
	}
	if len(line) == 0 || line[0] != '{' || !c.readMembers(line[1:], 0) {
		return false
	}
	if c.tail > 0 {
		form.learn(c, line)
	}
	return true
}

// readMembers reads what is left of a line, from the name of a member on. there has
// a bit for each field that was read before.
func (c *commonChunk) readMembers(rest []byte, there uint32) bool {
	for ; ; rest = skipBlank(rest[1:]) {
		var field fieldIndex
		field, rest = c.member(rest)
		if len(rest) == 0 || there&(1<<field) != 0 {
			return false
		}
		there |= 1 << field
		switch {
		case field == fieldStreamID:
			c.fromID = len(c.id) + len(`"`) + len(rest)
		case there == headFields && field == fieldTimeUnixNano:
			c.tail = len(rest)
		}
		if rest[0] != ',' {
			return string(rest) == "}" && isChunk(there)
		}
	}
}

// isChunk reports whether a line with these fields can be a chunk.
func isChunk(there uint32) bool {
	const needed, times = 1<<fieldEvent | 1<<fieldStreamID, 1<<fieldTimeUnixNano | 1<<fieldTime
	time := there & times
	return there&needed == needed && time != 0 && time != times
}

// member reads the member that text starts with, and returns what its field is and
// what comes after it: nothing, if it is not common.
func (c *commonChunk) member(text []byte) (field fieldIndex, rest []byte) {
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

func (c *commonChunk) unixNano(text []byte) (rest []byte) {
	at, rest := integer(text)
	c.chunk.UnixNano = int64(at)
	if c.chunk.UnixNano < 0 { // more than fits
		return nil
	}
	return rest
}

func (c *commonChunk) time(text []byte) (rest []byte) {
	at, rest := plainString(text)
	var err error
	if c.chunk.UnixNano, err = parseTime(at); err != nil {
		return nil
	}
	return rest
}

func (c *commonChunk) tokens(text []byte) (rest []byte) {
	if len(text) > 1 && text[0] == '1' && text[1] == ',' { // as mostly
		return text[1:]
	}
	tokens, rest := integer(text)
	if tokens > timeline.MaxTokensPerChunk {
		return nil
	}
	c.chunk.Tokens = uint32(tokens)
	return rest
}

func (c *commonChunk) channel(text []byte) (rest []byte) {
	switch {
	case len(text) >= 9 && string(text[:9]) == `"content"`:
		return text[9:]
	case len(text) >= 11 && string(text[:11]) == `"reasoning"`:
		c.chunk.Channel = timeline.Reasoning
		return text[11:]
	case len(text) >= 11 && string(text[:11]) == `"tool_call"`:
		c.chunk.Channel = timeline.ToolCall
		return text[11:]
	default:
		return nil
	}
}

// plainString reads the string that text starts with, and returns what comes
// after it: nothing, if any of the string needs attention.
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

// integer reads the non-negative integer that text starts with, written as a
// number or as a string of digits, and returns what comes after it: nothing, if
// it is none, or has too many digits.
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
