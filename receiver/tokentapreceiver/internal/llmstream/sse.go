// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// sseFramer reads Server-Sent Events as WHATWG defines them: lines end with LF, CRLF
// or CR, comments and events without data are dropped, data lines are joined with LF.
// The bytes of the unfinished line and of the event so far share the limit.
type sseFramer struct {
	line     jsonBuffer
	data     buffer
	omitted  omissions // of data
	name     []byte
	hasData  bool
	stray    bool // data holds lines without a field name that begin with a brace
	skipLF   bool // the last line ended with CR
	skipping bool // the event is too long
	inLine   bool // the line that is skipped has bytes
	foreign  bool // a line has no field of an event
}

func newSSEFramer(limits Limits) sseFramer {
	return sseFramer{line: limits.jsonBuffer(), data: limits.buffer()}
}

func (f *sseFramer) write(p []byte, out sink) {
	for len(p) > 0 {
		if f.skipLF {
			f.skipLF = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			end = len(p)
		}
		if cr := bytes.IndexByte(p[:end], '\r'); cr >= 0 {
			end = cr
		}
		if end == len(p) {
			f.keep(p)
			return
		}
		line := p[:end]
		if held := len(f.line.bytes) > 0; held || len(line)+len(f.data.bytes) > f.data.limit {
			f.keep(line)
			line = f.line.bytes
		}
		f.skipLF = p[end] == '\r'
		p = p[end+1:]
		if f.skipping {
			if len(line) == 0 && !f.inLine {
				f.skipping = false
				out.tooLong()
			}
			f.inLine = false
		} else {
			f.endLine(line, out)
		}
		f.line.reset()
	}
}

// keep stores a piece of a line whose end has not arrived.
func (f *sseFramer) keep(p []byte) {
	if len(p) == 0 {
		return
	}
	if f.skipping {
		f.inLine = true
		return
	}
	if f.line.limit = f.data.limit - len(f.data.bytes); !f.line.add(p) {
		f.skip(true)
	}
}

func (f *sseFramer) skip(inLine bool) {
	f.skipping, f.inLine = true, inLine
	f.line.reset()
	f.clear()
}

func (f *sseFramer) clear() {
	f.data.reset()
	f.omitted.reset()
	f.name, f.hasData, f.stray = f.name[:0], false, false
}

func (f *sseFramer) endLine(line []byte, out sink) {
	if len(line) == 0 {
		f.dispatch(out)
		return
	}
	if line[0] == ':' {
		return
	}
	field, rest, colon := bytes.Cut(line, []byte(":"))
	switch string(field) {
	case "data":
		if f.stray {
			f.dispatch(out)
		}
		rest = bytes.TrimPrefix(rest, []byte(" "))
		if f.hasData && !f.grow([]byte("\n")) || !f.grow(rest) {
			return
		}
		f.hasData = true
		if left := f.line.elider.omitted.moved(len(line) - len(f.data.bytes)); left != nil {
			f.take(left)
		}
	case "event":
		f.name = append(f.name[:0], bytes.TrimPrefix(rest[:min(len(rest), maxName)], []byte(" "))...)
	case "id", "retry":
	case "error":
		// Older llama.cpp servers send an error as a field of its own.
		if colon && !f.hasData && f.grow(rest) {
			f.stray = true
			f.name = append(f.name[:0], field...)
		}
	default:
		if f.stray || !f.hasData && (line[0] == '{' || line[0] == '[') {
			f.stray = f.grow(line)
		} else {
			f.foreign = true
		}
	}
}

// take takes over what is missing in the line that was appended last.
func (f *sseFramer) take(left *omissions) {
	for _, o := range left.strings[:left.n] {
		f.omitted.add(o)
	}
	f.omitted.lost = f.omitted.lost || left.lost
}

// grow appends to the event's data, and starts to skip the event if it is too long.
func (f *sseFramer) grow(p []byte) bool {
	if f.data.add(p) {
		return true
	}
	f.skip(false)
	return false
}

func (f *sseFramer) dispatch(out sink) {
	if f.hasData || f.stray || string(f.name) == "error" {
		out.event(event{name: f.name, data: f.data.bytes, omitted: f.omitted.moved(0), stray: f.stray})
	}
	f.clear()
}

// end dispatches an unterminated last event if its data is complete, as some services
// end without a blank line.
func (f *sseFramer) end(out sink) {
	if f.skipping {
		out.tooLong()
		return
	}
	if len(f.line.bytes) > 0 {
		f.endLine(f.line.bytes, out)
	}
	if f.skipping {
		out.tooLong()
		return
	}
	if f.hasData && !complete(f.data.bytes) {
		out.tail()
		return
	}
	if !f.hasData && !f.stray { // the data of a named event may have been cut
		return
	}
	f.dispatch(out)
}

func (f *sseFramer) release() {
	f.line.release()
	f.data.release()
}

// complete reports whether data ends with a whole JSON text or with the end marker.
func complete(data []byte) bool {
	last := data[bytes.LastIndexByte(data, '\n')+1:]
	if isDone(last) {
		return true
	}
	if _, ok := parse(data); ok {
		return true
	}
	_, ok := parse(last)
	return ok && last[0] == '{'
}

// isDone reports whether data is the end marker of OpenAI's streams.
func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }
