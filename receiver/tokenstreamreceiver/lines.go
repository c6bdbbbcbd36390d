// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"errors"
	"io"
)

// lineReader splits a body into lines in a buffer of fixed size. next returns lines that
// are already in the buffer, fill waits for more of the body.
type lineReader struct {
	body    io.Reader
	longest int // in bytes, without the end of the line
	buffer  []byte
	start   int // of the bytes in buffer that next has not returned
	end     int
	number  int // of the last line returned, from 1
	// skipping is set inside of a line that is too long.
	skipping bool
	err      error // of the end of the body, such as io.EOF
}

// readSize is the minimum size of the buffer.
const readSize = 64 << 10

func newLineReader(longest int) *lineReader {
	return &lineReader{longest: longest, buffer: make([]byte, max(readSize, longest+len("\r\n")))}
}

func (l *lineReader) reset(body io.Reader) {
	*l = lineReader{body: body, longest: l.longest, buffer: l.buffer}
}

// next returns the next line in the buffer that is not blank, without its end, or nil
// and true for a line that is too long. It reports false if fill must be called first.
// A line is valid until the next call of fill.
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
	if len(line) > 0 && line[0] == '{' { // the usual start
		return false
	}
	return len(bytes.TrimSpace(line)) == 0
}

// fill waits for more of the body. At the end of the body it returns the error of the
// end, once next has returned all lines.
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
