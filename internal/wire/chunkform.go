package wire

import (
	"bytes"
	"math"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Who writes chunks writes them alike: lines differ in the stream and in the time,
// and in little else. A chunkForm is what the last common chunk said besides these
// two, as text. A line that has the same text in the same places is not searched for
// names any more: the text is compared, and what is in between is read.
//
// That the texts are the same means that the lines have the same members, as long as
// each of the two values ends where the text goes on. The id does: it is plain, and
// the text goes on with its quote. The time does: it has nineteen digits, and the
// text goes on with a quote, a comma or the closing brace.
//
// A form has nothing but what a commonChunk reads: names, tokens, channel, and a
// blank here and there. So it is short, and no content of anybody can be in it.

// chunkForm is how chunks are written.
type chunkForm struct {
	learned bool

	// The head of a line is its event, its stream and its time, in this order or
	// with the event in between.
	before  []byte // the id
	between []byte // the id and the time's digits
	quoted  bool   // the time is

	// The tail is all that comes after the time's digits: nothing, if it has a
	// number that the next line will not have.
	tail    []byte
	tokens  uint32
	channel timeline.Channel
}

// headFields has a bit for each field of a head.
const headFields uint32 = 1<<fieldEvent | 1<<fieldStreamID | 1<<fieldTimeUnixNano

// readHead reads the head of a line into c and returns the tail: nothing, if the
// line does not have the form's head, or ends there.
func (f *chunkForm) readHead(c *commonChunk, line []byte) (tail []byte) {
	if !bytes.HasPrefix(line, f.before) {
		return nil
	}
	rest := line[len(f.before):]
	length := plainLength(rest)
	c.id, rest = rest[:length], rest[length:]
	if !bytes.HasPrefix(rest, f.between) {
		return nil
	}
	rest = rest[len(f.between):]
	at := nineteenDigits(rest)
	if at < leastNineteen || at > math.MaxInt64 {
		return nil
	}
	c.chunk.UnixNano = int64(at)
	return rest[mostDigits:]
}

// readTail reads a tail into c, by name if it is not the form's, or reports false
// if it has anything that is not common.
func (f *chunkForm) readTail(c *commonChunk, tail []byte) bool {
	if bytes.Equal(tail, f.tail) {
		c.chunk.Tokens, c.chunk.Channel = f.tokens, f.channel
		return true
	}
	rest := tail
	if f.quoted {
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
	f.learnTail(c, tail)
	return true
}

// learn remembers how a line is written that c has read by name.
func (f *chunkForm) learn(c *commonChunk, line []byte) {
	if c.chunk.UnixNano < leastNineteen {
		return
	}
	end := len(line) - c.tail
	f.quoted = line[end-1] == '"'
	if f.quoted {
		end--
	}
	id := len(line) - c.fromID
	f.before = append(f.before[:0], line[:id]...)
	f.between = append(f.between[:0], line[id+len(c.id):end-mostDigits]...)
	f.learned = true
	f.learnTail(c, line[end:])
}

func (f *chunkForm) learnTail(c *commonChunk, tail []byte) {
	f.tail = f.tail[:0]
	if !c.chunk.Numbered {
		f.tail = append(f.tail, tail...)
		f.tokens, f.channel = c.chunk.Tokens, c.chunk.Channel
	}
}
