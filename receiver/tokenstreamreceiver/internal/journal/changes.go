// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package journal

// Changes are changes of entries that are stored together. The zero value is empty.
type Changes struct {
	records []record
	content []byte // of all records, one after the other
	keep    bool   // see Journal.Write
}

// record is one change of an entry.
type record struct {
	entry  *Entry
	kind   kind
	length int // of the content
}

// kind is the kind of a record.
type kind uint8

const (
	base   kind = iota // the whole content of the entry; replaces what is stored
	change             // is applied to the content so far
	finish             // removes the entry
	kinds
)

// Content returns the content of the records so far. Append that of the next one to it, and
// pass the result to Base or Change.
func (c *Changes) Content() []byte { return c.content }

// Base adds the whole content of an entry, which is what was appended to Content.
func (c *Changes) Base(e *Entry, content []byte) { c.add(e, base, content) }

// Change adds a change of an entry, which is what was appended to Content.
func (c *Changes) Change(e *Entry, content []byte) { c.add(e, change, content) }

// Finish removes an entry.
func (c *Changes) Finish(e *Entry) { c.add(e, finish, c.content) }

func (c *Changes) add(e *Entry, k kind, content []byte) {
	c.records = append(c.records, record{e, k, len(content) - len(c.content)})
	c.content = content
}

// IsEmpty reports whether there are no changes.
func (c *Changes) IsEmpty() bool { return len(c.records) == 0 }

// Size returns the bytes of memory that the changes hold.
func (c *Changes) Size() int { return cap(c.content) + 32*cap(c.records) }

// Reset empties the changes. It keeps the buffers unless they are large.
func (c *Changes) Reset() {
	const keep = 64 << 10
	clear(c.records) // for the garbage collector
	if c.Size() > keep {
		*c = Changes{}
		return
	}
	c.records, c.content = c.records[:0], c.content[:0]
}

// group is the changes that are written together.
type group struct {
	changes []*Changes
	written chan struct{} // closed after the attempt to write
	err     error         // of the attempt
}

func newGroup() *group { return &group{written: make(chan struct{})} }

// kept returns the changes that remain to be written after a failure.
func (g *group) kept() *Changes {
	kept := &Changes{keep: true}
	for _, c := range g.changes {
		if !c.keep {
			continue
		}
		for _, r := range c.records {
			if r.kind == finish {
				kept.Finish(r.entry)
			}
		}
	}
	return kept
}
