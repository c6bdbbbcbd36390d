// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package fleet

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

const (
	fleetClients = 16
	fleetPause   = 20 * time.Millisecond // of a client after each request
)

// fleetLoad sends batches of two streams in two traces, which may belong to different
// workers. Each client has one batch in flight. Batches that were not acknowledged are
// repeated when the load ends. All counts are of streams.
type fleetLoad struct {
	url     string
	http    http.Client
	clients sync.WaitGroup

	mu      sync.Mutex
	batches []loadBatch
	again   []int
	ending  time.Time // zero while the load runs
}

type loadBatch struct{ sent, acked time.Time } // acked is zero until the sender got 200

func startFleetLoad(t *testing.T, endpoint string) *fleetLoad {
	t.Helper()
	// The gateway holds a batch for up to 10 seconds.
	l := &fleetLoad{url: "http://" + endpoint + "/v1/tokens", http: http.Client{Timeout: 20 * time.Second}}
	for range fleetClients {
		l.clients.Go(func() {
			for batch := l.next(); batch >= 0; batch = l.next() {
				l.record(batch, l.send(batch))
				time.Sleep(fleetPause)
			}
		})
	}
	t.Cleanup(func() {
		l.end()
		l.clients.Wait()
	})
	return l
}

// next returns the batch to send, or -1 when all were acknowledged.
func (l *fleetLoad) next() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ending.IsZero():
		l.batches = append(l.batches, loadBatch{sent: time.Now()})
		return len(l.batches) - 1
	case len(l.again) == 0 || time.Since(l.ending) > 2*collector.Patience:
		return -1
	}
	batch := l.again[0]
	l.again = l.again[1:]
	return batch
}

func (l *fleetLoad) send(batch int) (acknowledged bool) {
	var body strings.Builder
	for i := 2 * batch; i < 2*batch+2; i++ {
		begin := time.Date(2026, 1, 1, 0, 0, 0, i*int(time.Millisecond), time.UTC).UnixNano()
		fmt.Fprintf(&body, `{"event":"start","stream_id":"load-%[1]d","trace_id":"%032[2]x","time_unix_nano":"%[3]d"}
{"event":"chunk","stream_id":"load-%[1]d","time_unix_nano":"%[4]d"}
{"event":"chunk","stream_id":"load-%[1]d","time_unix_nano":"%[5]d"}
{"event":"end","stream_id":"load-%[1]d","time_unix_nano":"%[5]d"}
`, i, i+1, begin, begin+2e8, begin+3e8)
	}
	response, err := l.http.Post(l.url, "application/x-ndjson", strings.NewReader(body.String()))
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func (l *fleetLoad) record(batch int, acknowledged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if acknowledged {
		l.batches[batch].acked = time.Now()
	} else {
		l.again = append(l.again, batch)
	}
}

// acknowledged counts the streams that were acknowledged in a period.
func (l *fleetLoad) acknowledged(from, to time.Time) int {
	return l.count(func(b loadBatch) bool { return b.acked.After(from) && b.acked.Before(to) })
}

// inFlight counts the streams that were sent before `to` and were not acknowledged
// before `from`.
func (l *fleetLoad) inFlight(from, to time.Time) int {
	return l.count(func(b loadBatch) bool { return b.sent.Before(to) && (b.acked.IsZero() || b.acked.After(from)) })
}

// mostInFlight is the limit of streams in flight at any moment. inFlight of a period may
// exceed it.
const mostInFlight = 2 * fleetClients

func (l *fleetLoad) count(matches func(loadBatch) bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, b := range l.batches {
		if matches(b) {
			n += 2
		}
	}
	return n
}

// waitFor waits until some more streams are acknowledged.
func (l *fleetLoad) waitFor(t *testing.T, more int) {
	t.Helper()
	from := time.Now()
	require.Eventually(t, func() bool { return l.acknowledged(from, time.Now()) >= more },
		2*collector.Patience, 50*time.Millisecond, "fewer than %d streams are acknowledged", more)
}

func (l *fleetLoad) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending.IsZero() {
		l.ending = time.Now()
	}
}

// finish ends the load, waits until all streams are acknowledged, and returns their
// number.
func (l *fleetLoad) finish(t *testing.T) int {
	t.Helper()
	l.end()
	l.clients.Wait()
	unacknowledged := l.count(func(b loadBatch) bool { return b.acked.IsZero() })
	require.Zero(t, unacknowledged, "streams that were repeated in vain")
	return 2 * len(l.batches)
}
