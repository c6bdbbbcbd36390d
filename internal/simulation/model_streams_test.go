// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The model of the receiver: which streams are open and what they hold. It knows the rules
// of the documentation, and nothing of the code.

// content is what the receiver has of a stream.
type content struct {
	*stream
	chunks     map[int]bool // by index
	ended      bool
	lastActive time.Time
	lastToken  time.Time // or else the start
	client     int       // that opened it
	units      int
}

func (c *content) add(p part, units int) {
	for i, to := p.chunkRange(); i < to; i++ {
		c.chunks[i] = true
	}
	c.ended = c.ended || p.hasEnd()
	c.units += units
}

func newContent(p part, units int) *content {
	c := &content{stream: p.stream, chunks: map[int]bool{}}
	c.add(p, units)
	return c
}

// arrivals returns the chunks in order.
func (c *content) arrivals() (all []chunk) {
	for _, i := range slices.Sorted(maps.Keys(c.chunks)) {
		all = append(all, c.stream.chunks[i])
	}
	return all
}

// expires returns the time from which the stream may be sent as incomplete.
func (c *content) expires(p *profile) time.Time {
	if len(c.chunks) == 0 {
		return c.lastActive.Add(p.firstToken)
	}
	return c.lastActive.Add(p.idle)
}

// prediction is what a message should do.
type prediction struct {
	message            *message
	accepted, rejected int
	created, closed    int                 // open streams
	finished           map[string]*content // by stream
	limit              string              // setting that refuses the message
	calls              []*call             // that delivered its streams
	claims             []string            // streams
}

func (d *prediction) net() int { return d.created - d.closed }

// predict computes what a message does to the open streams.
func (w *world) predict(m *message) *prediction {
	d := &prediction{message: m, finished: map[string]*content{}}
	closedOfClient := 0
	for _, p := range m.parts {
		units := m.units(p)
		open := w.open[p.id]
		if open == nil && !p.hasStart() {
			d.rejected += units
			continue
		}
		d.accepted += units
		switch {
		case p.hasEnd():
			whole := newContent(p, units)
			if open != nil {
				maps.Copy(whole.chunks, open.chunks)
				whole.units += open.units
				d.closed++
				if open.client == m.client {
					closedOfClient++
				}
			}
			d.finished[p.id] = whole
		case open == nil:
			d.created++
		}
		if open != nil || !p.hasEnd() {
			d.claims = append(d.claims, p.id)
		}
	}
	held, ofClient := w.held(m.client)
	after := held + max(0, d.net())
	switch {
	case d.net() > 0 && after > w.maxStreams:
		d.limit = "max_streams"
	case 2*after > w.maxStreams && d.created > closedOfClient && ofClient+d.created-closedOfClient > w.maxStreamsPerClient():
		d.limit = "max_share_per_client"
	}
	return d
}

// held returns the number of open streams, with those that messages in progress open, and
// how many of them one client has.
func (w *world) held(client int) (all, ofClient int) {
	for _, c := range w.open {
		all++
		if c.client == client {
			ofClient++
		}
	}
	for _, f := range w.flights {
		all += max(0, f.predicted.net())
		if f.message.client == client {
			ofClient += f.predicted.created
		}
	}
	return all, ofClient
}

// apply does to the model what an accepted message does.
func (w *world) apply(d *prediction) {
	for _, p := range d.message.parts {
		units := d.message.units(p)
		open := w.open[p.id]
		switch {
		case open == nil && !p.hasStart():
		case p.hasEnd():
			delete(w.open, p.id)
			w.emitted += d.finished[p.id].units
			w.counters["events_finished"] += d.finished[p.id].units
			w.counters["streams_finished "+p.outcome]++
			w.aggregated(d.finished[p.id], p.outcome, false)
		default:
			if open == nil {
				open = &content{stream: p.stream, chunks: map[int]bool{}, client: d.message.client}
				w.open[p.id] = open
			}
			before := len(open.chunks)
			open.add(p, units)
			open.lastActive = time.Now()
			if open.lastToken.IsZero() || len(open.chunks) > before {
				open.lastToken = open.lastActive
			}
		}
	}
	w.counters["events_accepted"] += d.accepted
	w.counters["events_rejected unknown_stream"] += d.rejected
}

// settle compares the answer to a message with the prediction, and applies it.
func (w *world) settle(f *flight, r *reply) {
	d := f.predicted
	var failed error
	delivered := 0
	for _, c := range d.calls {
		failed = c.err
		if c.err == nil {
			delivered += len(c.spans)
		}
	}
	if failed == nil && (r.status == 200 || f.live != nil && r.status == 0) {
		w.checkDelivered(d, r)
	}
	refused := func(status int) {
		if r.status != status && r.status != 0 {
			w.failf("%v: want %d, got %v", d.message, status, r)
		}
		if f.live == nil && r.Accepted+r.Rejected != 0 {
			w.failf("%v: refused, so nothing counts before it is sent again, but got %v", d.message, r)
		}
	}
	switch {
	case d.limit != "" && len(d.calls) > 0:
		w.failf("%v: %s should have refused it, but its streams were delivered", d.message, d.limit)
	case r.status == 429 && len(d.calls) == 0:
		w.settleFull(d, r)
	case d.limit != "" || w.mustRefuseStarts(d):
		w.failf("%v: %s should have refused it, got %v", d.message, d.limit, r)
	case failed != nil && f.live != nil && r.status == 0:
		w.failf("%v: the live body goes on after %v", d.message, failed)
	case failed != nil && isPermanent(failed):
		refused(400)
	case failed != nil:
		refused(503)
	case w.path == viaSpans && delivered != len(d.finished):
		w.failf("%v: %d of %d streams were delivered before the answer %v", d.message, delivered, len(d.finished), r)
	case f.live != nil && r.status == 0:
		w.apply(d)
	default:
		want := 200
		if d.accepted == 0 {
			want = 400
		}
		if f.live == nil && (r.status != want || r.Accepted != d.accepted || r.Rejected != d.rejected) {
			w.failf("%v: want %d, accepted %d, rejected %d; got %v", d.message, want, d.accepted, d.rejected, r)
		}
		w.apply(d)
	}
	if r.status == 0 && f.live == nil && failed == nil {
		w.failf("%v: no answer", d.message)
	}
}

// settleFull checks a refusal at a limit.
func (w *world) settleFull(d *prediction, r *reply) {
	limit := "?"
	for _, setting := range []string{"max_streams", "max_share_per_client", "max_memory_mib", "max_live_requests", "the pipeline temporarily refuses"} {
		for _, e := range r.Errors {
			if len(e.Message) >= len(setting) && e.Message[:len(setting)] == setting {
				limit = setting
			}
		}
	}
	switch {
	case limit == "the pipeline temporarily refuses":
		limit = "pipeline"
		if d.created == 0 || len(d.finished) > 0 {
			w.failf("%v: refused although it opens no streams, or ends some: %v", d.message, r)
		}
		if time.Since(w.refusedAt) > longestRetry {
			w.failf("%v: refused although the pipeline has not refused anything since %v", d.message, w.refusedAt)
		}
	case limit == "max_memory_mib" && w.bulky:
		// A body takes up to twelve times its size while it is read: as JSON, as protobuf and as
		// spans. Messages that the pipeline holds keep theirs.
		body, _ := d.message.encode()
		if held := w.selfMetrics()[memoryMetric]; held+12*len(body) < maxMemoryMiB<<20/2 {
			w.failf("%v: max_memory_mib is reached with %d bytes held and a body of %d", d.message, held, len(body))
		}
	case limit != d.limit:
		w.failf("%v: want limit %q, got %v", d.message, d.limit, r)
	}
	w.counters["streams_refused "+limit]++
}

// longestRetry is the longest time that expired streams wait for a retry, and that no streams
// are opened after a refusal: a minute with a jitter of 20%, and some ticks.
const longestRetry = 75 * time.Second

// refusalHold is the time for which no streams are opened after a refusal.
const refusalHold = 5 * time.Second

func (w *world) mustRefuseStarts(d *prediction) bool {
	return d.created > 0 && len(d.finished) == 0 && w.startsRefused && time.Since(w.refusedAt) < refusalHold
}

// expired does to the model what an accepted or lost call of the expirer does.
func (w *world) expired(c *call, counter, events string) {
	for _, s := range c.spans {
		if w.open[s.content.id] == nil {
			w.failf("stream %s expired, but is not open", s.content.id)
			return
		}
		w.end(s.content, counter, events)
	}
}

// end removes a stream that is no longer open.
func (w *world) end(c *content, counter, events string) {
	delete(w.open, c.id)
	w.emitted += c.units
	w.counters[counter]++
	w.counters[events] += c.units
}

// byExpiry returns the open streams in the order in which they expire.
func (w *world) byExpiry() []*content {
	expiry := func(c *content) time.Time { return c.expires(&w.profile) }
	return slices.SortedFunc(maps.Values(w.open), func(a, b *content) int {
		return cmp.Or(expiry(a).Compare(expiry(b)), strings.Compare(a.id, b.id))
	})
}

// drop removes the streams that the receiver dropped because the pipeline refused them for
// too long. Only their number is known: they are those that expired first.
func (w *world) drop(lost int, cause string, after time.Duration) {
	all := w.byExpiry()
	for _, c := range all[:min(lost, len(all))] {
		if age := time.Since(c.expires(&w.profile)); age < after {
			w.failf("a stream was dropped (%s), but the oldest, %s, expired only %v ago", cause, c.id, age)
		}
		w.end(c, "streams_lost "+cause, "events_lost "+cause)
	}
	if lost > len(all) {
		w.failf("%d streams were dropped (%s), but only %d were open", lost, cause, len(all))
	}
	w.logf("%d streams dropped (%s)", lost, cause)
}

// checkOverdue checks that no stream stays open for long after it expired.
func (w *world) checkOverdue() {
	for _, c := range w.calls {
		if c.expired { // other streams wait behind it
			return
		}
	}
	for id, c := range w.open {
		since := c.expires(&w.profile)
		for _, trouble := range []time.Time{w.refusedAt, w.releasedAt} {
			if since.Before(trouble) {
				since = trouble
			}
		}
		if late := time.Since(since); late > longestRetry && !w.claimed(id) {
			w.failf("stream %s is open, but expired %v ago", id, late)
		}
	}
}

func (c *content) String() string { return fmt.Sprintf("%s with %d chunks", c.id, len(c.chunks)) }

// maxStreamsPerClient is the share of one client, rounded, and at least 1.
func (w *world) maxStreamsPerClient() int {
	if w.maxShare == 1 {
		return w.maxStreams
	}
	return map[int]int{6: 2, 20: 5, 1000: 250}[w.maxStreams]
}
