// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
)

// fates are what the upstream of the soak does with a request.
var fates = []string{"complete", "complete", "gzip", "failed", "cut", "refused", "silent"}

// sendFate answers a request as its path says.
func sendFate(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	switch r.FormValue("fate") {
	case "complete":
		llmservice.WriteChunks(w, 20)
		_, _ = io.WriteString(w, llmservice.ChatEnd)
	case "gzip":
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(w)
		_, _ = io.WriteString(compressed, strings.Repeat(llmservice.ChatChunk, 20)+llmservice.ChatEnd)
		_ = compressed.Close()
	case "failed":
		http.Error(w, `{"error":{"type":"overloaded","message":"no"}}`, http.StatusServiceUnavailable)
	case "cut":
		llmservice.WriteChunks(w, 1+rand.IntN(10))
		panic(http.ErrAbortHandler)
	case "refused":
		panic(http.ErrAbortHandler)
	case "silent":
		llmservice.WriteChunks(w, rand.IntN(3))
		<-r.Context().Done()
	}
}

// tapSoak sends requests through a tap, and breaks many of them off.
type tapSoak struct {
	address                  string
	client                   http.Client
	attempted                atomic.Int64
	finished, failed, cutOff atomic.Int64 // answers that the client read to their end, by what it saw
}

// run sends requests until ctx ends.
func (s *tapSoak) run(ctx context.Context) {
	const senders = 48
	var running sync.WaitGroup
	for i := range senders {
		running.Go(func() {
			random := rand.New(rand.NewPCG(16, uint64(i)))
			for ctx.Err() == nil {
				s.attempted.Add(1)
				fate := fates[random.IntN(len(fates))]
				switch random.IntN(8) {
				case 0:
					s.breakOff(random)
				case 1, 2:
					s.ask("silent", time.Duration(random.IntN(50))*time.Millisecond)
				default:
					s.ask(fate, 200*time.Millisecond+time.Duration(random.IntN(200))*time.Millisecond)
				}
			}
		})
	}
	running.Wait()
	s.client.CloseIdleConnections()
}

// ask reads an answer, and breaks it off after a time.
func (s *tapSoak) ask(fate string, within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+llmservice.ChatPath+"?fate="+fate, strings.NewReader(llmservice.ChatAsked))
	if err != nil {
		return
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.cutOff.Add(1)
	case answer.StatusCode != http.StatusOK:
		s.failed.Add(1)
	case fate == "gzip" || strings.HasSuffix(string(body), llmservice.ChatEnd):
		s.finished.Add(1)
	}
}

// breakOff closes a connection somewhere in its request or answer.
func (s *tapSoak) breakOff(random *rand.Rand) {
	connection, err := net.Dial("tcp", s.address)
	if err != nil {
		return
	}
	defer connection.Close()
	request := fmt.Sprintf("POST %s?fate=silent HTTP/1.1\r\nHost: tap\r\nContent-Length: %d\r\n\r\n%s", llmservice.ChatPath, len(llmservice.ChatAsked), llmservice.ChatAsked)
	_, _ = io.WriteString(connection, request[:random.IntN(len(request)+1)])
	if random.IntN(2) == 0 {
		_ = connection.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, _ = bufio.NewReader(connection).ReadByte()
	}
	if tcp, ok := connection.(*net.TCPConn); ok && random.IntN(2) == 0 {
		_ = tcp.SetLinger(0) // a reset instead of an end
	}
}

// withoutSpanFiles keeps a long run from filling the disk.
const withoutSpanFiles = `
exporters: {nop: }
service: {pipelines: {traces/sent: {exporters: [nop]}, traces: {exporters: [token_sli]}}}
`

// Clients and upstreams that break off at any point leave no goroutine, connection or open
// stream in the tap, each exchange ends in one span, and the upstream notices each client
// that has gone.
func TestSoak_TapLeavesNothingBehind(t *testing.T) {
	var received, answering atomic.Int64
	upstream := llmservice.Start(t, func(w http.ResponseWriter, r *http.Request) {
		received.Add(1)
		answering.Add(1)
		defer answering.Add(-1)
		sendFate(w, r)
	})
	c := collector.StartTap(t, upstream.URL, withoutSpanFiles)
	profiles := &soak{self: c.Self, pprof: c.Pprof}
	load := &tapSoak{address: c.Address, client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}

	rest := func(when string, goroutines int64, descriptors int) {
		upstream.CloseClientConnections() // those that the tap keeps for the next request
		require.EventuallyWithT(t, func(collect *assert.CollectT) {
			m := exposition.ScrapeSelf(t, c.Self)
			assert.Zero(collect, m.Of("receiver_token_tap_streams_open"), "open streams")
			assert.Zero(collect, m.Of("receiver_token_tap_queue_size"), "queued spans")
			assert.Zero(collect, answering.Load(), "answers of the upstream to clients that are gone")
			http.DefaultClient.CloseIdleConnections()
			assert.LessOrEqual(collect, c.Descriptors(t), descriptors, "files and sockets")
			assert.LessOrEqual(collect, profiles.goroutines(t), goroutines, "goroutines")
		}, 2*collector.Patience, 200*time.Millisecond, when)
	}
	under := func(lasts time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		load.run(ctx)
	}
	http.DefaultClient.CloseIdleConnections()
	goroutines, descriptors := profiles.goroutines(t), c.Descriptors(t)
	t.Logf("at the start: %d goroutines, %d files and sockets", goroutines, descriptors)
	under(*soakDouble / 4)
	rest("after the warm-up", goroutines, descriptors)
	warm := profiles.heap(t)
	under(*soakDouble)
	rest("after the load", goroutines, descriptors)

	m := exposition.ScrapeSelf(t, c.Self)
	outcomes := map[string]int64{}
	all := int64(0)
	for _, outcome := range []string{"success", "error", "cancelled", "incomplete"} {
		outcomes[outcome] = m.Of("receiver_token_tap_exchanges_finished", "outcome="+outcome)
		all += outcomes[outcome]
	}
	t.Logf("%d attempts, %d received by the upstream, spans: %v; the live heap grew by %d bytes",
		load.attempted.Load(), received.Load(), outcomes, profiles.heap(t)-warm)
	require.Zero(t, m.Of("receiver_token_tap_exchanges_unrecognised")+m.Of("receiver_token_tap_exchanges_unobserved")+m.Of("receiver_token_tap_spans_dropped"))
	require.LessOrEqual(t, all, load.attempted.Load(), "one span for each exchange at most")
	require.GreaterOrEqual(t, all, received.Load(), "one span for each exchange at least")
	// The clients saw these, and broke off others.
	require.GreaterOrEqual(t, outcomes["success"], load.finished.Load())
	require.GreaterOrEqual(t, outcomes["error"], load.failed.Load())
	require.GreaterOrEqual(t, outcomes["incomplete"], load.cutOff.Load())
	for outcome, n := range outcomes {
		require.Positive(t, n, outcome)
	}
	// Caches and the buffers of scrapes differ by up to 1 MiB.
	require.LessOrEqual(t, profiles.heap(t), warm+max(warm/10, 2<<20), "live heap")
}
