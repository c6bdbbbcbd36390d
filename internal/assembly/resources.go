// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"bytes"
	"sync"
	"sync/atomic"
	"unsafe"
)

// resources holds the resources of the open streams. Streams with equal resources share
// one copy, whose bytes count once.
type resources struct {
	memory *atomic.Int64 // of the store

	mu sync.Mutex
	// mu guards everything declared below, and the streams of each resource.
	shared map[string]*resource // by content
}

// resource is a resource of open streams, or of streams that a transaction opens.
type resource struct {
	encoded []byte // never changes
	streams int
}

// resourceOverhead is the memory of a resource without its content: the struct, and an
// entry in a map with spare capacity.
const resourceOverhead = int(unsafe.Sizeof(resource{})) + 64

func (r *resource) size() int64 { return int64(resourceOverhead + len(r.encoded)) }

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
		r.shared[shared.content()] = shared
		added = shared.size()
		r.memory.Add(added)
	}
	shared.streams++
	return shared, added
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
	}
}
