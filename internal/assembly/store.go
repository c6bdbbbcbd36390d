package assembly

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const shards = 64

// Store holds the open streams. It is safe for concurrent use.
type Store struct {
	limits Limits
	// now counts from any moment on and never goes back.
	now    func() time.Duration
	seed   maphash.Seed
	shards [shards]shard

	// streams and memory are what is held, plus what transactions under way
	// have reserved.
	streams, memory atomic.Int64
}

// NewStore returns an empty store. now is a monotonic clock of any origin.
func NewStore(limits Limits, now func() time.Duration) *Store {
	s := &Store{limits: limits, now: now, seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].init()
	}
	return s
}

// Streams returns how many streams are open.
func (s *Store) Streams() int64 { return s.streams.Load() }

// Memory returns the bytes that open streams hold.
func (s *Store) Memory() int64 { return s.memory.Load() }

func (s *Store) shardOf(id string) *shard {
	return &s.shards[maphash.String(s.seed, id)%shards]
}

// shard is a share of the open streams.
type shard struct {
	mu sync.Mutex
	// mu guards everything declared below, and of each stream the fields that
	// say so.
	streams map[string]*open
	// idle is the ring of the streams by when they were last heard of, longest
	// ago first. It is a stream itself only to close the ring.
	idle open
}

// open is a stream in the store. What is known of it belongs to whoever holds
// the claim.
type open struct {
	Stream

	// The shard's mutex guards everything declared below.
	claim     *claim
	start     Start // Stream.Start, for those who have no claim
	lastHeard time.Duration
	older     *open
	newer     *open
}

// claim is held on streams by one transaction.
type claim struct {
	released chan struct{} // closed when it is over
}

func (s *shard) init() {
	s.streams = map[string]*open{}
	s.idle.older, s.idle.newer = &s.idle, &s.idle
}

// startOf returns how an open stream started, or a zero Start.
func (s *shard) startOf(id string) Start {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stream := s.streams[id]; stream != nil {
		return stream.start
	}
	return Start{}
}

// heard moves a stream to the end of the ring and gives up the claim on it. Its
// start may be another one now.
func (s *shard) heard(stream *open, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream.unlink()
	stream.older, stream.newer = s.idle.older, &s.idle
	stream.older.newer, stream.newer.older = stream, stream
	stream.lastHeard = now
	stream.start = stream.Start
	stream.claim = nil
}

// release gives up the claim on a stream.
func (s *shard) release(stream *open) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream.claim = nil
}

// remove takes a stream out.
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
