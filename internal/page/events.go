// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Limits of event streams.
const (
	// MaxEventStreams limits the streams that are open at a time.
	MaxEventStreams = 64
	// writeTime limits the time that a client takes to read an event. A slower one is
	// dropped.
	writeTime = 10 * time.Second

	eventInterval = 2 * time.Second
)

// clients are those that read events.
type clients struct {
	closing context.Context // done when the page closes
	close   context.CancelFunc
}

// Clients returns the number of open event streams.
func (p *Page) Clients() int64 { return p.EventStreams.Held() }

// events streams the answers of `now` until the client or the page closes.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	if _, err := p.parse("events", r); err != nil {
		fail(w, err)
		return
	}
	client := httpguard.ClientOf(r.Context())
	switch p.EventStreams.Take(client) {
	case httpguard.Full:
		fail(w, p.refuse(limitEventStreams, "close other pages, or ask "+root+"now instead", "%d clients read events already", MaxEventStreams))
		return
	case httpguard.ShareFull:
		fail(w, p.refuse(limitShare, "close other pages, or raise max_share_per_client", "this client reads its share of events already"))
		return
	}
	defer p.EventStreams.Give(client)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold events back
	s := &stream{w: w, control: http.NewResponseController(w)}
	s.send("retry: 2000\n\n")
	ticker := time.NewTicker(eventInterval)
	defer ticker.Stop()
	for slot := p.slot(); s.err == nil; {
		p.sendNow(s, r)
		if open := p.slot(); open != slot {
			s.send(fmt.Sprintf("event: history\ndata: %d\n\n", slot))
			slot = open
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		case <-p.clients.closing.Done():
			return
		}
	}
}

// slot returns the start of the open slot of the history.
func (p *Page) slot() int64 { return aligned(p.Now(), series.HistorySlot).Unix() }

// sendNow sends the current answer. Clients with the same filter share it.
func (p *Page) sendNow(s *stream, r *http.Request) {
	body, err := p.answer("now", root+"now", r, p.now)
	if err == nil { // else too many requests wait: the next event follows
		s.send("event: now\ndata: " + string(body) + "\n\n")
	}
}

// stream writes events to one client. It outlives the write timeout of the server.
type stream struct {
	w       io.Writer
	control *http.ResponseController
	err     error
}

func (s *stream) send(event string) {
	if s.err == nil {
		s.err = s.control.SetWriteDeadline(time.Now().Add(writeTime))
	}
	if s.err == nil {
		_, s.err = io.WriteString(s.w, event)
	}
	if s.err == nil {
		s.err = s.control.Flush()
	}
}
