// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"errors"
	"io"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// LineReader splits a body into lines. next returns lines that are already in the
// buffer, Fill waits for more of the body. The buffer grows with the data that arrives
// at once.
type LineReader struct {
	body    io.Reader
	longest int // in bytes, without the end of the line
	buffer  []byte
	memory  Reservation // of buffer
	start   int         // of the bytes in buffer that next has not returned
	end     int
	number  int // of the last line returned, from 1
	// skipping is set inside of a line that is too long.
	skipping bool
	err      error // of the end of the body, such as io.EOF

	arrived int  // bytes of the last read
	more    bool // the last read filled the buffer
	small   int  // reads in a row that would have fit into a buffer of minBuffer
	// rejected is the number of lines in a row that were rejected.
	rejected int
}

const (
	// minBuffer is the initial size of the buffer.
	minBuffer = 4 << 10
	// readSize is the size up to which the buffer grows for lines of any length.
	readSize = 64 << 10
	// smallReads is the number of small reads in a row after which a large buffer shrinks.
	smallReads = 64
)

// NewLineReader returns a reader of lines of up to longest bytes.
func NewLineReader(longest int, store *assembly.Store) *LineReader {
	return &LineReader{longest: longest, memory: Reservation{Store: store}}
}

// Reset begins a body. It returns an assembly.FullError without memory for the buffer.
func (l *LineReader) Reset(body io.Reader) error {
	*l = LineReader{body: body, longest: l.longest, buffer: l.buffer, memory: l.memory}
	return l.memory.Add(int64(len(l.buffer)))
}

// Close ends the use of a body.
func (l *LineReader) Close() {
	l.body = nil
	l.memory.Free()
}

// next returns the next line in the buffer that is not blank, without its end, or nil
// and true for a line that is too long. It reports false if Fill must be called first.
// A line is valid until the next call of Fill.
func (l *LineReader) next() (line []byte, ok bool) {
	for {
		rest := l.buffer[l.start:l.end]
		length := bytes.IndexByte(rest, '\n')
		switch {
		case length >= 0:
			line, l.start = rest[:length], l.start+length+1
		case errors.Is(l.err, io.EOF) && (len(rest) > 0 || l.skipping):
			line, l.start = rest, l.end
		case len(rest) >= l.longest+len("\r\n"):
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

// Fill waits for more of the body. At the end of the body it returns the error of the
// end, once next has returned all lines. It returns an assembly.FullError if there is
// no memory for a larger buffer.
func (l *LineReader) Fill() error {
	if l.err != nil {
		return l.err
	}
	if err := l.makeRoom(); err != nil {
		return err
	}
	n, err := l.body.Read(l.buffer[l.end:])
	l.end += n
	l.err, l.arrived = err, n
	l.more = l.end == len(l.buffer)
	if l.small++; n > minBuffer/2 {
		l.small = 0
	}
	lastLine := errors.Is(err, io.EOF) && (l.end > 0 || l.skipping)
	if n > 0 || lastLine {
		return nil
	}
	return err
}

// makeRoom moves the rest of the last line to the front of a buffer with room for more.
func (l *LineReader) makeRoom() error {
	rest := l.buffer[l.start:l.end]
	size := len(l.buffer)
	switch {
	case size == 0, size > minBuffer && l.small > smallReads && len(rest) < minBuffer/2:
		size = minBuffer
	case l.more:
		size = min(2*size, max(readSize, l.longest+len("\r\n")))
	}
	buffer := l.buffer
	if size != len(buffer) {
		if err := l.memory.Add(int64(size - len(buffer))); err != nil {
			return err
		}
		buffer = make([]byte, size)
	}
	l.end = copy(buffer, rest)
	l.start, l.buffer = 0, buffer
	return nil
}
