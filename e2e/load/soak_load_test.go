// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/grpc"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// soakLoad sends requests at a multiple of a Collector's capacity. A quarter of them are
// broken off by the client. Their streams have ever new models, and some never end.
type soakLoad struct {
	collector  *collector.Collector
	maxStreams int
	http       *http.Client
	connection *grpc.ClientConn
	grpc       tokenpulsev1.TokenStreamServiceClient

	sent, accepted atomic.Int64 // requests that are not broken off, and those accepted
	number         atomic.Int64
}

// soakSenders is the number of requests in flight at most.
const soakSenders = 64

// abandonedFor is the lifetime of streams without an end: idle_timeout.
const abandonedFor = 3 * time.Second

func newSoakLoad(t *testing.T, c *collector.Collector, maxStreams int) *soakLoad {
	t.Helper()
	l := &soakLoad{
		collector: c, maxStreams: maxStreams,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}},
	}
	l.connect(t)
	return l
}

func (l *soakLoad) connect(t *testing.T) {
	t.Helper()
	l.connection = l.collector.Connect(t)
	l.grpc = tokenpulsev1.NewTokenStreamServiceClient(l.connection)
}

// saturate sends requests one after the other in a few senders, and returns the requests
// per second.
func (l *soakLoad) saturate(lasts time.Duration) (capacity float64) {
	const senders = 8
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	var requests atomic.Int64
	var running sync.WaitGroup
	for range senders {
		running.Go(func() {
			for ctx.Err() == nil {
				l.request()
				requests.Add(1)
			}
		})
	}
	running.Wait()
	return float64(requests.Load()) / lasts.Seconds()
}

// run offers a rate of requests, and a share of the streams that the Collector holds, until
// ctx ends. A Collector that is too slow gets as many requests at a time as there are
// senders.
func (l *soakLoad) run(ctx context.Context, rate, share float64) {
	due := make(chan struct{}, soakSenders)
	var running sync.WaitGroup
	for range soakSenders {
		running.Go(func() {
			for range due {
				if ctx.Err() == nil {
					l.request()
				}
			}
		})
	}
	running.Go(func() { l.abandon(ctx, share) })
	running.Go(func() { l.scrapeBrokenOff(ctx) })
	begin, offered := time.Now(), 0.0
	for ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
		for target := rate * time.Since(begin).Seconds(); offered < target; offered++ {
			select {
			case due <- struct{}{}:
			default: // all senders are busy
			}
		}
	}
	close(due)
	running.Wait()
}

// request sends one request or breaks one off.
func (l *soakLoad) request() {
	ctx, cancel := context.WithTimeout(context.Background(), collector.Patience)
	defer cancel()
	n := l.number.Add(1)
	model := "steady"
	if n%10 == 0 {
		model = fmt.Sprintf("model-%d", n)
	}
	id := fmt.Sprintf("soak-%d", n)
	switch n % 16 {
	case 0, 4:
		l.breakOffBody(id, model)
	case 2, 6:
		l.breakOffCall(ctx, id, model)
	case 1, 3, 5:
		l.counted(l.postStream(ctx, id, model))
	default:
		_, err := l.grpc.Export(ctx, soakMessage(id, model, true))
		l.counted(err == nil)
	}
}

func (l *soakLoad) counted(accepted bool) {
	l.sent.Add(1)
	if accepted {
		l.accepted.Add(1)
	}
}

func soakMessage(id, model string, ended bool) *tokenpulsev1.ExportTokenStreamsRequest {
	begin := time.Now().Add(-time.Second)
	stream := &tokenpulsev1.TokenStream{
		StreamId: id,
		Start: &tokenpulsev1.StreamStart{
			TimeUnixNano: uint64(begin.UnixNano()),
			Attributes:   []*commonv1.KeyValue{tokenevents.KeyValue("gen_ai.request.model", model)},
		},
		ChunkRuns: []*tokenpulsev1.ChunkRun{{
			TimeUnixNano: uint64(begin.Add(100 * time.Millisecond).UnixNano()), DeltaUnitNanos: 1000, TimeDeltas: make([]int64, 100),
		}},
	}
	for i := range stream.ChunkRuns[0].TimeDeltas {
		stream.ChunkRuns[0].TimeDeltas[i] = int64(1000 + 7*i)
	}
	if ended {
		stream.End = &tokenpulsev1.StreamEnd{}
	}
	return &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{{TokenStreams: []*tokenpulsev1.TokenStream{stream}}}}
}

func soakLines(id, model string) []string {
	begin := time.Now().Add(-time.Second)
	lines := []string{tokenevents.Line("start", id, begin, fmt.Sprintf(`,"attributes":{"gen_ai.request.model":%q}`, model))}
	lines = append(lines, tokenevents.Chunks(id, begin, 1, 20)...)
	return append(lines, tokenevents.Line("end", id, begin.Add(time.Second), ""))
}

func (l *soakLoad) postStream(ctx context.Context, id, model string) (accepted bool) {
	return l.postBody(ctx, strings.NewReader(strings.Join(soakLines(id, model), "\n")))
}

func (l *soakLoad) postBody(ctx context.Context, body io.Reader) (accepted bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.collector.HTTP+"/v1/tokens", body)
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	response, err := l.http.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode == http.StatusOK
}

// breakOffBody cancels a live body in the middle.
func (l *soakLoad) breakOffBody(id, model string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reader, writer := io.Pipe()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		l.postBody(ctx, reader)
	}()
	for _, line := range soakLines(id, model)[:10] {
		if _, err := io.WriteString(writer, line+"\n"); err != nil {
			break
		}
	}
	cancel()
	_ = writer.CloseWithError(context.Canceled)
	<-answered
}

// breakOffCall cancels a call of Stream, and one of Export.
func (l *soakLoad) breakOffCall(ctx context.Context, id, model string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if call, err := l.grpc.Stream(ctx); err == nil {
		_ = call.Send(soakMessage(id, model, false))
	}
	soon, stop := context.WithTimeout(ctx, time.Millisecond)
	defer stop()
	_, _ = l.grpc.Export(soon, soakMessage(id+"-unary", model, true))
}

// abandon opens streams that never end, so that about a share of all places is taken.
func (l *soakLoad) abandon(ctx context.Context, share float64) {
	const requests = 10 // in the lifetime of a stream; few, so that a slow Collector gets them all
	inOneRequest := int(share * float64(l.maxStreams) / requests)
	pace := time.NewTicker(abandonedFor / requests)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		var lines []string
		for range inOneRequest {
			lines = append(lines, soakLines(fmt.Sprintf("abandoned-%d", l.number.Add(1)), "steady")[:2]...)
		}
		l.counted(l.postBody(context.Background(), strings.NewReader(strings.Join(lines, "\n"))))
	}
}

// scrapeBrokenOff scrapes /metrics again and again, and reads only the beginning.
func (l *soakLoad) scrapeBrokenOff(ctx context.Context) {
	for ctx.Err() == nil {
		func() {
			scrape, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			request, _ := http.NewRequestWithContext(scrape, http.MethodGet, l.collector.MetricsURL(), http.NoBody)
			response, err := l.http.Do(request)
			if err != nil {
				return
			}
			defer response.Body.Close()
			_, _ = io.CopyN(io.Discard, response.Body, 1000)
		}()
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// disconnect closes all idle connections. Calls open them again.
func (l *soakLoad) disconnect(t *testing.T) {
	t.Helper()
	l.http.CloseIdleConnections()
	require.NoError(t, l.connection.Close())
	l.connect(t)
}
