// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

// Limits bound the memory of a decoder.
type Limits struct {
	// EventBytes bounds what is held of an event. A longer one is read as jsonBuffer has it, and skipped if that is still too
	// long. Longer frames of AWS, and longer messages of a connection that are compressed or the client's, are skipped.
	EventBytes int
	// Memory is charged with what the decoder holds. Events that it has no room for are
	// skipped as too long. It may be nil.
	Memory *Account
}

func (l Limits) buffer() buffer { return buffer{limit: l.EventBytes, memory: l.Memory} }

// event is one unit of the answer's framing. Its bytes are valid until the call returns.
type event struct {
	// name is the SSE event name, or the event or exception type of an AWS frame.
	name []byte
	data []byte
	// omitted says what jsonBuffer left out of data. It is nil if nothing is missing.
	omitted *omissions
	// stray marks SSE lines outside any field: no event, but they may hold an error.
	stray bool
	// exception marks an AWS exception or error frame.
	exception bool
}

// A framer cuts a body into events. It holds at most Limits.EventBytes between writes.
type framer interface {
	write(p []byte, out sink)
	// end flushes what the end of the body completes.
	end(out sink)
}

// bodyFramer is a framer of bodies. Release gives its memory back: nothing follows.
type bodyFramer interface {
	framer
	release()
}

// sink takes what a framer finds.
type sink interface {
	event(e event)
	// tooLong counts an event that was skipped; it has an index like any other.
	tooLong()
	// invalid counts bytes between events that do not belong there.
	invalid()
	// corrupt says that the framing is broken: nothing after it can be read.
	corrupt()
	// tail says that the body ended inside an event.
	tail()
}

// buffer collects bytes up to a limit.
type buffer struct {
	bytes  []byte
	limit  int
	memory *Account
}

// add appends p and reports whether it fitted. If not, the buffer is emptied.
func (b *buffer) add(p []byte) bool {
	if len(b.bytes)+len(p) > b.limit {
		b.reset()
		return false
	}
	if need := len(b.bytes) + len(p); need > cap(b.bytes) {
		// append alone may reserve more than the limit.
		size := min(max(2*cap(b.bytes), need), b.limit)
		if !b.memory.Take(size - cap(b.bytes)) {
			b.reset()
			return false
		}
		b.bytes = append(make([]byte, 0, size), b.bytes...)
	}
	b.bytes = append(b.bytes, p...)
	return true
}

// keptCapacity is the capacity above which a buffer is not kept for the next event.
const keptCapacity = 64 << 10

func (b *buffer) reset() {
	if cap(b.bytes) > keptCapacity {
		b.release()
	}
	b.bytes = b.bytes[:0]
}

func (b *buffer) release() {
	b.memory.Give(cap(b.bytes))
	b.bytes = nil
}
