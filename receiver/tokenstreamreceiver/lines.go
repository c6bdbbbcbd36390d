package tokenstreamreceiver

import (
	"bytes"
	"errors"
	"io"
)

// lineReader splits a body into lines, in a buffer of fixed size, and tells what
// is there already from what has to be waited for.
type lineReader struct {
	body    io.Reader
	longest int // bytes of a line, without its end
	buffer  []byte
	start   int // of what was not returned yet, in buffer
	end     int
	number  int // of the last line returned, from 1
	// skipping is set in the middle of a line that is too long.
	skipping bool
	err      error // that the body ended with, io.EOF included
}

// readSize is the least size of the buffer.
const readSize = 64 << 10

func newLineReader(longest int) *lineReader {
	return &lineReader{longest: longest, buffer: make([]byte, max(readSize, longest+len("\r\n")))}
}

func (l *lineReader) reset(body io.Reader) {
	*l = lineReader{body: body, longest: l.longest, buffer: l.buffer}
}

// next returns the next line that is there already and is not blank, without its
// end, or nil and true when it is too long. It reports false when fill has to be
// called first. A line is good until then.
func (l *lineReader) next() (line []byte, ok bool) {
	for {
		rest := l.buffer[l.start:l.end]
		length := bytes.IndexByte(rest, '\n')
		switch {
		case length >= 0:
			line, l.start = rest[:length], l.start+length+1
		case errors.Is(l.err, io.EOF) && (len(rest) > 0 || l.skipping):
			line, l.start = rest, l.end
		case len(rest) == len(l.buffer):
			l.skipping, l.start, l.end = true, 0, 0
			return nil, false
		default:
			return nil, false
		}
		l.number++
		if last := len(line) - 1; last >= 0 && line[last] == '\r' {
			line = line[:last]
		}
		if l.skipping || len(line) > l.longest {
			l.skipping = false
			return nil, true
		}
		if !isBlank(line) {
			return line, true
		}
	}
}

func isBlank(line []byte) bool {
	if len(line) > 0 && line[0] == '{' { // as most lines begin
		return false
	}
	return len(bytes.TrimSpace(line)) == 0
}

// fill waits for more of the body. After next has returned all there was, it
// returns the error that the body ended with.
func (l *lineReader) fill() error {
	if l.err != nil {
		return l.err
	}
	l.end = copy(l.buffer, l.buffer[l.start:l.end])
	l.start = 0
	n, err := l.body.Read(l.buffer[l.end:])
	l.end += n
	l.err = err
	lastLine := errors.Is(err, io.EOF) && (l.end > 0 || l.skipping)
	if n > 0 || lastLine {
		return nil
	}
	return err
}
