// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"bytes"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/journal"
)

// resources holds the resources of the open streams. Streams with equal resources share
// one copy, whose bytes count once.
type resources struct {
	memory  *atomic.Int64 // of the store
	journal *journal.Journal

	mu sync.Mutex
	// mu guards everything declared below, and the streams of each resource.
	shared map[string]*resource // by content
}

// resource is a resource of open streams, or of streams that a transaction opens.
type resource struct {
	encoded []byte // never changes
	streams int
	entry   *journal.Entry // nil without a journal
}

// resourceOverhead is the memory of a resource without its content: the struct, and an
// entry in a map with spare capacity.
const resourceOverhead = int(unsafe.Sizeof(resource{})) + 64

func (r *resource) size() int64 {
	size := resourceOverhead + len(r.encoded)
	if r.entry != nil {
		size += entryMemory
	}
	return int64(size)
}

// content returns the content as a key of the map, which shares its memory.
func (r *resource) content() string {
	return unsafe.String(unsafe.SliceData(r.encoded), len(r.encoded)) //nolint:gosec // encoded never changes while the resource is in the map
}

// acquire returns the shared resource with this content, for one more stream. It returns
// nil for an empty one. last may be the resource of another stream that the caller holds:
// comparing with it is faster than the map. added is the memory of a new resource.
func (r *resources) acquire(encoded []byte, last *resource) (shared *resource, added int64) {
	if len(encoded) == 0 {
		return nil, 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last != nil && bytes.Equal(last.encoded, encoded) {
		last.streams++
		return last, 0
	}
	shared = r.shared[string(encoded)]
	if shared == nil {
		shared = &resource{encoded: encoded}
		shared.entry = r.journal.NewEntry(shared)
		r.shared[shared.content()] = shared
		added = shared.size()
		r.memory.Add(added)
	}
	shared.streams++
	return shared, added
}

// restore adds a stream to a resource from the journal, and the resource if it is its first.
// It returns the resource to use, which is another one if their contents are equal.
func (r *resources) restore(stored *resource) *resource {
	r.mu.Lock()
	defer r.mu.Unlock()
	shared := r.shared[stored.content()]
	if shared == nil {
		shared = stored
		r.shared[stored.content()] = stored
		r.memory.Add(stored.size())
	}
	shared.streams++
	return shared
}

// release gives up the resource of one stream. The last one removes it.
func (r *resources) release(shared *resource) {
	if shared == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if shared.streams--; shared.streams == 0 {
		delete(r.shared, shared.content())
		r.memory.Add(-shared.size())
		r.journal.Finish(shared.entry)
	}
}
