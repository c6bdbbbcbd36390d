// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Limits of what is kept of a file of token events. They are variables for tests.
var (
	// maxOpenStreams and maxOpenChunks bound the streams without an end.
	maxOpenStreams = 1 << 18
	maxOpenChunks  = 8 << 20
	// maxEndedStreams bounds the IDs of streams with an end, beyond which the oldest are forgotten: a further event of
	// such a stream has another error, and its start begins another stream.
	maxEndedStreams = 1 << 20
	// maxResources bounds the resources that streams share a pointer to.
	maxResources = 1 << 10
)

// events reads NDJSON token events strictly: the events of a stream must come after
// its start and before its end.
type events struct {
	byID   map[string]*stream.Stream
	chunks int // of the streams in byID
	// seed hashes the IDs in ended, and in endedOrder, which is a ring.
	seed       maphash.Seed
	ended      map[uint64]struct{}
	endedOrder []uint64
	oldest     int
	resources  map[string]*stream.Resource // by their JSON
}

func newEvents() *events {
	return &events{
		byID: map[string]*stream.Stream{}, seed: maphash.MakeSeed(), ended: map[uint64]struct{}{},
		resources: map[string]*stream.Resource{},
	}
}

// open returns the streams without an end in the order of their starts.
func (r *events) open() []*stream.Stream {
	open := slices.Collect(maps.Values(r.byID))
	slices.SortFunc(open, func(a, b *stream.Stream) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) })
	return open
}

func (r *events) read(line []byte) (*stream.Stream, error) {
	var e stream.Event
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber() // a float64 cannot hold every int64 attribute
	if err := decoder.Decode(&e); err != nil {
		return nil, fmt.Errorf("not an event: %w", err)
	}
	if e.StreamID == "" {
		return nil, errors.New("the event has no stream_id; every event needs one")
	}
	at, err := unixNano(&e)
	if err != nil {
		return nil, err
	}
	if at == 0 && e.Event != stream.EventEnd {
		return nil, errors.New("the event has no time; give time_unix_nano or time")
	}
	if e.Event == stream.EventStart {
		return nil, r.start(&e, at)
	}
	s, ok := r.byID[e.StreamID]
	if _, ended := r.ended[r.hash(e.StreamID)]; !ok && ended {
		return nil, fmt.Errorf("stream %q has already ended; put its end event after its other events", e.StreamID)
	}
	if !ok {
		return nil, fmt.Errorf("stream %q has not started; put its start event before its other events", e.StreamID)
	}
	switch e.Event {
	case stream.EventScheduled:
		s.Scheduled = at
	case stream.EventChunk:
		return nil, r.addChunk(s, &e, at)
	case stream.EventEnd:
		s.End = &stream.End{
			Time: at, Usage: e.Usage, FinishReason: e.FinishReason, Error: e.Error, Cancelled: e.Cancelled, Interrupted: e.Interrupted,
			Attributes: plainAttributes(e.Attributes),
		}
		r.forget(s)
		return s, nil
	default:
		return nil, fmt.Errorf("unknown event %q; valid events: start, scheduled, chunk, end", e.Event)
	}
	return nil, nil
}

// unixNano returns the event's time, or 0 for an event without one.
func unixNano(e *stream.Event) (int64, error) {
	if e.Time == "" || e.TimeUnixNano != 0 {
		return int64(e.TimeUnixNano), nil
	}
	at, err := time.Parse(time.RFC3339Nano, e.Time)
	if err != nil {
		return 0, fmt.Errorf("time %q is not RFC 3339; example: 2026-11-21T03:00:00.000000001Z", e.Time)
	}
	if at.Before(time.Unix(0, 0)) || at.After(time.Unix(0, math.MaxInt64)) {
		return 0, fmt.Errorf("time %q is out of range; give a time from 1970 to 2262", e.Time)
	}
	return at.UnixNano(), nil
}

func (r *events) start(e *stream.Event, at int64) error {
	_, open := r.byID[e.StreamID]
	if _, ended := r.ended[r.hash(e.StreamID)]; open || ended {
		return fmt.Errorf("stream %q starts a second time; give each stream its own stream_id", e.StreamID)
	}
	if len(r.byID) >= maxOpenStreams {
		return fmt.Errorf("more than %d streams have no end; put the events of a stream closer together", maxOpenStreams)
	}
	s := &stream.Stream{
		ID: e.StreamID, Start: at,
		Attributes: plainAttributes(e.Attributes),
		Resource:   r.resource(e.Resource),
	}
	var ok bool
	if s.Vantage, ok = timeline.ParseVantage(e.Vantage); !ok {
		return fmt.Errorf("unknown vantage %q; valid vantages: client, gateway, server, engine", e.Vantage)
	}
	var errs [3]error
	s.TraceID, errs[0] = id("trace_id", e.TraceID, 16)
	s.SpanID, errs[1] = id("span_id", e.SpanID, 8)
	s.ParentSpanID, errs[2] = id("parent_span_id", e.ParentSpanID, 8)
	if err := cmp.Or(errs[:]...); err != nil {
		return err
	}
	r.byID[s.ID] = s
	return nil
}

// forget removes a stream that has ended, except for its ID.
func (r *events) forget(s *stream.Stream) {
	delete(r.byID, s.ID)
	r.chunks -= len(s.Chunks)
	h := r.hash(s.ID)
	if len(r.endedOrder) < maxEndedStreams {
		r.endedOrder = append(r.endedOrder, h)
	} else {
		delete(r.ended, r.endedOrder[r.oldest])
		r.endedOrder[r.oldest] = h
		r.oldest = (r.oldest + 1) % maxEndedStreams
	}
	r.ended[h] = struct{}{}
}

func (r *events) hash(id string) uint64 { return maphash.String(r.seed, id) }

func (r *events) addChunk(s *stream.Stream, e *stream.Event, at int64) error {
	c := stream.Chunk{Time: at, Tokens: 1}
	if e.Tokens != nil {
		if *e.Tokens < 0 || *e.Tokens > timeline.MaxTokensPerChunk {
			return fmt.Errorf("tokens is %d; give a number from 0 to %d", *e.Tokens, timeline.MaxTokensPerChunk)
		}
		c.Tokens = uint32(*e.Tokens)
	}
	if e.Channel != "" {
		var ok bool
		if c.Channel, ok = timeline.ParseChannel(e.Channel); !ok {
			return fmt.Errorf("unknown channel %q; valid channels: content, reasoning, tool_call, audio", e.Channel)
		}
	}
	c.Tokens = c.Channel.TokensIn(c.Tokens)
	if e.Sequence != nil {
		c.Sequence, c.Sequenced = *e.Sequence, true
	}
	if r.chunks >= maxOpenChunks {
		return fmt.Errorf("streams without an end have more than %d chunks; put the events of a stream closer together", maxOpenChunks)
	}
	s.Chunks = append(s.Chunks, c)
	r.chunks++
	return nil
}

func id(key, text string, size int) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != size {
		return nil, fmt.Errorf("%s %q is not %d hex digits", key, text, 2*size)
	}
	return b, nil
}

// resource returns the same pointer for equal attributes.
func (r *events) resource(attributes stream.Attributes) *stream.Resource {
	if len(attributes) == 0 {
		return nil
	}
	key, err := json.Marshal(attributes)
	if err != nil { // cannot happen: the attributes were decoded from JSON
		panic(err)
	}
	known, ok := r.resources[string(key)]
	if !ok {
		if len(r.resources) >= maxResources {
			clear(r.resources)
		}
		known = &stream.Resource{Attributes: plainAttributes(attributes)}
		r.resources[string(key)] = known
	}
	return known
}

// plainAttributes converts each json.Number to an int64 or float64, in place.
func plainAttributes(attributes stream.Attributes) stream.Attributes {
	for key, v := range attributes {
		attributes[key] = plain(v)
	}
	return attributes
}

func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil { // out of the range of a double
			return v.String()
		}
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case map[string]any:
		return plainAttributes(v)
	default:
		return v
	}
}
