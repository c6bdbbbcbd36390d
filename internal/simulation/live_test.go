// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"
)

// live is an NDJSON body that a client keeps open. What it writes at once is applied at once,
// so each write is a flight of its own, without an answer as long as all goes well.
type live struct {
	*stream
	client             int
	body               *io.PipeWriter
	answer             chan reply
	cancel             context.CancelFunc
	written            int // events
	last               time.Time
	accepted, rejected int
	ended              string // why the client expects an answer
}

// openLive lets a client open a live body, or a full one: at max_live_requests it is refused.
func (w *world) openLive(r *rand.Rand) {
	w.streams++
	s := newStream(r, &w.profile, fmt.Sprintf("s%d", w.streams), time.Now())
	ctx, cancel := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	l := &live{stream: s, client: r.IntN(clients), body: writer, answer: make(chan reply, 1), cancel: cancel, last: time.Now()}
	network := w.process.network
	go func() { l.answer <- network.post(ctx, l.client, "application/x-ndjson", reader) }()
	w.let(synctest.Wait)
	w.logf("client %d opens a live body for %s", l.client, s.id)
	select {
	case answer := <-l.answer:
		w.logf("%s: %v", l.id, &answer)
		l.abort()
		d := &prediction{limit: "max_live_requests", message: &message{}}
		if len(w.lives) < w.maxLive || answer.status != 429 {
			w.failf("live body %d of %d: %v", len(w.lives)+1, w.maxLive, &answer)
		}
		w.settleFull(d, &answer)
	default:
		if len(w.lives) >= w.maxLive {
			w.failf("max_live_requests is %d, but another body was opened", w.maxLive)
		}
		w.lives = append(w.lives, l)
	}
}

// useLive writes to a live body, ends it or cuts it.
func (w *world) useLive(r *rand.Rand) {
	if len(w.lives) == 0 {
		return
	}
	l := w.lives[r.IntN(len(w.lives))]
	switch {
	case w.claimed(l.id):
	case chance(r, 10):
		w.logf("client %d cuts the live body for %s", l.client, l.id)
		l.ended = "cut"
		l.abort()
	case l.written == l.events() || chance(r, 10):
		w.logf("client %d ends the live body for %s", l.client, l.id)
		l.ended = "end"
		_ = l.body.Close()
	default:
		w.write(l, min(l.events(), l.written+1+r.IntN(4)))
	}
}

// write writes the events of a live body up to one.
func (w *world) write(l *live, to int) {
	w.messages++
	m := &message{number: w.messages, client: l.client, parts: []part{{l.stream, l.written, to}}}
	f := &flight{message: m, predicted: w.predict(m), answer: l.answer, cancel: func() {}, live: l}
	w.flights = append(w.flights, f)
	l.written, l.last = to, time.Now()
	var lines bytes.Buffer
	for event := m.parts[0].from; event < to; event++ {
		l.line(&lines, event)
	}
	go func() { _, _ = l.body.Write(lines.Bytes()) }()
	w.poll()
}

// abort ends the connection within the body.
func (l *live) abort() {
	_ = l.body.CloseWithError(io.ErrUnexpectedEOF)
	l.cancel()
}

// pollLives takes the answers to live bodies.
func (w *world) pollLives() {
	w.lives = slices.DeleteFunc(w.lives, func(l *live) bool {
		if slices.ContainsFunc(w.flights, func(f *flight) bool { return f.live == l }) {
			return false
		}
		select {
		case r := <-l.answer:
			w.liveAnswered(l, &r)
			return true
		default:
			if l.ended != "" {
				w.failf("live body for %s: %s, but no answer", l.id, l.ended)
			}
			return false
		}
	})
}

// liveAnswered takes the answer to a live body that was not refused.
func (w *world) liveAnswered(l *live, r *reply) {
	w.logf("live body for %s: %v", l.id, r)
	l.abort()
	want := 200
	switch {
	case l.ended == "cut" || w.process.isDead():
		want = 0
	case !w.stopping.IsZero():
		want = 503
	case l.ended == "" && time.Since(l.last) < w.idle:
		w.failf("live body for %s ended %v after its last line", l.id, time.Since(l.last))
	case l.accepted == 0 && (l.rejected > 0 || l.ended == ""):
		want = 400
	}
	if r.status != want || want != 0 && (r.Accepted != l.accepted || r.Rejected != l.rejected) {
		w.failf("live body for %s: want %d, accepted %d, rejected %d; got %v", l.id, want, l.accepted, l.rejected, r)
	}
	w.resume(l, r.status == 200)
}

// resume lets the client send the rest of a live body, and what was not acknowledged, in
// messages.
func (w *world) resume(l *live, acknowledged bool) {
	c := w.clients[l.client]
	from := l.written
	if !acknowledged && l.written > 0 {
		w.newMessage(c, asNDJSON).parts = []part{{l.stream, 0, l.written}}
	}
	if from < l.events() && (from > 0 || !acknowledged) {
		w.newMessage(c, asNDJSON).parts = []part{{l.stream, from, l.events()}}
	}
}
