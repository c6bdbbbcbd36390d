// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// familiar is the event that was read last. Most events of a stream differ from the one before only in
// the text of their token, so they have the same facts. Reading each event takes a sixth of the CPU time
// that token_tap spends on a chunk, comparing it a tenth of that.
//
// A reader looks at a text only to see whether it is empty, or how long its audio is, and reading an event twice
// leaves the same record as reading it once, but for the facts of the event. TestFamiliar_* hold each format to that.
type familiar struct {
	memory *Account
	name   []byte
	data   []byte // the JSON of the event, without its text
	text   int    // where the text belongs in data, 0 for no event
	facts  eventFacts
}

// maxFamiliar bounds the events that are kept, without their text.
const maxFamiliar = 4 << 10

// learn keeps an event that was read, if it has a text that is not empty. Of several, only the last may
// differ.
func (f *familiar) learn(e event, r *record) {
	f.text = 0
	text := r.lastText
	if len(text) == 0 || r.adds || e.omitted != nil || len(e.data)-len(text) > maxFamiliar {
		return
	}
	// Some readers decode JSON that was encoded in the event.
	start := cap(e.data) - cap(text) + 1 // behind the quote
	if start < 1 || start >= len(e.data) || &e.data[start] != &text[1] {
		return
	}
	end := start + len(text) - 2
	if need := len(e.data) - (end - start); need > cap(f.data) {
		if !f.memory.TakeSpare(need - cap(f.data)) {
			return
		}
		f.data = make([]byte, 0, need)
	}
	f.data = append(append(f.data[:0], e.data[:start]...), e.data[end:]...)
	f.name, f.text, f.facts = append(f.name[:0], e.name...), start, r.eventFacts
	f.facts.lastText = nil // of the event
}

// is reports whether an event differs from the kept one at most in its text, which is not empty.
func (f *familiar) is(e event) bool {
	before, after := f.data[:f.text], f.data[f.text:]
	end := len(e.data) - len(after)
	return f.text > 0 && end > f.text &&
		bytes.Equal(e.data[:f.text], before) && bytes.Equal(e.data[end:], after) && bytes.Equal(e.name, f.name) &&
		isInside(e.data[f.text-1:end+1])
}

// textOf returns the text of an event that differs from the kept one only in it, with its quotes.
func (f *familiar) textOf(e event) value {
	return e.data[f.text-1 : len(e.data)-len(f.data)+f.text+1]
}

// isInside reports whether a text in quotes is one string.
func isInside(quoted []byte) bool {
	for _, c := range quoted[1 : len(quoted)-1] {
		if c < ' ' || c == '"' || c == '\\' {
			_, ok := parse(quoted)
			return ok
		}
	}
	return true
}
