// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/journal"
)

const shards = 64

// Store holds the open streams. It is safe for concurrent use.
type Store struct {
	limits Limits
	// now is a monotonic clock with any origin.
	now    func() time.Duration
	seed   maphash.Seed
	shards [shards]shard

	clients   clients
	resources resources
	journal   *journal.Journal               // nil without OpenJournal
	engineOf  func(*Stream) *liveness.Engine // nil without WatchEngines
	changes   sync.Pool                      // of *journal.Changes

	// streams and memory include what transactions in progress have reserved.
	streams, memory atomic.Int64
	expireFrom      atomic.Uint64 // shard with which the next call of Expire starts
	requests        atomic.Int64  // see Reserve
	accepted        atomic.Int64  // units of the open streams
}

// NewStore returns an empty store. now is a monotonic clock with any origin.
func NewStore(limits Limits, now func() time.Duration) *Store {
	s := &Store{limits: limits, now: now, seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].init()
	}
	s.clients.usages = map[httpguard.Client]*clientUsage{}
	s.resources.shared, s.resources.memory = map[string]*resource{}, &s.memory
	return s
}

// Streams returns the number of open streams, reservations included.
func (s *Store) Streams() int64 { return s.streams.Load() }

// Accepted returns the accepted units of all open streams.
func (s *Store) Accepted() int64 { return s.accepted.Load() }

// Memory returns the bytes that open streams and requests in progress hold.
func (s *Store) Memory() int64 { return s.memory.Load() + s.requests.Load() }

func (s *Store) shardOf(id string) *shard {
	return &s.shards[maphash.String(s.seed, id)%shards]
}

// remove removes a stream from the store.
func (s *Store) remove(shard *shard, stream *open) {
	shard.remove(stream)
	s.clients.remove(stream.client, 1)
	s.resources.release(stream.resource)
}

// shard holds the open streams whose IDs hash to it.
type shard struct {
	mu sync.Mutex
	// mu guards everything declared below, and the marked fields of each open stream.
	streams map[string]*open
	idle    ring // streams with chunks
	waiting ring // streams that wait for their first chunk
}

// ring is the sentinel of a ring of streams, ordered by lastActive: newer is the stream
// that has been idle longest.
type ring open

func (r *ring) init() { r.older, r.newer = (*open)(r), (*open)(r) }

// append adds a stream that is active now.
func (r *ring) append(stream *open) {
	stream.older, stream.newer = r.older, (*open)(r)
	stream.older.newer, stream.newer.older = stream, stream
}

// open is a stream in the store. Only the holder of the claim may access Stream. It changes what
// startOf and Visit read, Start, Resource and Attributes, with the shard's mutex.
type open struct {
	Stream
	client   *clientUsage
	resource *resource         // of Stream.Resource
	entry    *journal.Entry    // nil without a journal
	request  *liveness.Request // nil if no engine is watched

	// The shard's mutex guards everything declared below.
	claim      *claim // nil if unclaimed
	lastActive time.Duration
	lastToken  time.Duration // when a token arrived, or else the start
	tokens     int64         // in Chunks
	older      *open
	newer      *open
}

// claim is the lock that one transaction holds on its streams.
type claim struct {
	released chan struct{} // closed at the end of the transaction

	mu      sync.Mutex // held while the journal rewrites a claimed stream
	storing bool       // guarded by mu: the transaction is storing its changes
}

// openOverhead is the memory of an open stream without what its fields refer to: the
// struct, and an entry in a map with spare capacity.
const openOverhead = int(unsafe.Sizeof(open{})) + 64

// entryMemory is the memory of an entry of the journal.
const entryMemory = int(unsafe.Sizeof(journal.Entry{}))

// size returns the bytes that the stream holds, without its resource.
func (o *open) size() int64 {
	size := openOverhead + len(o.ID) + cap(o.Attributes) + o.Chunks.size()
	if o.entry != nil {
		size += entryMemory
	}
	return int64(size)
}

func (s *shard) init() {
	s.streams = map[string]*open{}
	s.idle.init()
	s.waiting.init()
}

// startOf returns the start of an open stream, or a zero Start.
func (s *shard) startOf(id string) Start {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stream := s.streams[id]; stream != nil {
		return stream.Start
	}
	return Start{}
}

// update merges the head of a part into its stream, whose other events are merged, and releases the
// claim. progress means that tokens arrived. It returns the size of the stream.
func (s *shard) update(part *Part, now time.Duration, progress bool) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if part.created {
		part.open.Start = Start{} // which was there for startOf only
	}
	part.open.mergeHead(part.accepted())
	s.touch(part.open, now, progress || part.created)
	return part.open.size()
}

// touch marks a stream as active now and releases its claim. progress means that it has started, or
// that tokens arrived. The caller holds the mutex.
func (s *shard) touch(stream *open, now time.Duration, progress bool) {
	stream.unlink()
	if stream.Chunks.Len() == 0 {
		s.waiting.append(stream)
	} else {
		s.idle.append(stream)
	}
	stream.lastActive = now
	if progress {
		stream.lastToken = now
	}
	stream.tokens = stream.Chunks.Tokens()
	stream.claim = nil
}

// release releases the claim on a stream.
func (s *shard) release(stream *open) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream.claim = nil
}

// remove removes a stream from the shard.
func (s *shard) remove(stream *open) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, stream.ID)
	stream.unlink()
}

func (o *open) unlink() {
	if o.older == nil {
		return
	}
	o.older.newer, o.newer.older = o.newer, o.older
	o.older, o.newer = nil, nil
}
