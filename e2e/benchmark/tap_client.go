// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// tapLoad is a number of concurrent streams, each with chunks at a rate.
type tapLoad struct {
	streams   int
	perSecond int           // chunks of a stream
	each      time.Duration // of a stream; another one follows it
	lasts     time.Duration // of a turn, without the warm-up
	http2     bool          // clients share connections to the proxy
}

func (l tapLoad) String() string {
	protocol := "HTTP/1.1"
	if l.http2 {
		protocol = "HTTP/2"
	}
	return fmt.Sprintf("%d streams of %d chunks, %d per second, %s", l.streams, l.chunks(), l.perSecond, protocol)
}

func (l tapLoad) chunks() int { return int(l.each.Seconds()) * l.perSecond }

// tapSample holds what the clients saw, in seconds.
type tapSample struct {
	chunk []float64 // from the upstream's write to the client's read
	first []float64 // of the first chunk, and from the client's request to the upstream
}

func (s *tapSample) add(other tapSample) {
	s.chunk, s.first = append(s.chunk, other.chunk...), append(s.first, other.first...)
}

// streamer keeps streams through one proxy open.
type streamer struct {
	url      string
	client   http.Client
	from, to time.Time // what is read between them counts

	cancel   context.CancelFunc
	running  sync.WaitGroup
	samples  []tapSample
	failures []error
}

// start opens the streams of a load one after the other during the length of a stream, so
// that neither connections nor chunks come in bursts. Every proxy gets the same schedule. What is read from a time on
// counts: then each stream has begun, and each connection is open.
func (l tapLoad) start(address string, from time.Time) *streamer {
	every := time.Second / time.Duration(l.perSecond)
	transport := &http.Transport{MaxIdleConnsPerHost: l.streams, DisableCompression: true, Protocols: &http.Protocols{}}
	transport.Protocols.SetHTTP1(!l.http2)
	transport.Protocols.SetUnencryptedHTTP2(l.http2)
	s := &streamer{
		url:     fmt.Sprintf("http://%s%s?chunks=%d&every=%s", address, streamPath, l.chunks(), every),
		client:  http.Client{Transport: transport},
		from:    from,
		samples: make([]tapSample, l.streams), failures: make([]error, l.streams),
	}
	s.to = s.from.Add(l.lasts)
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	random := rand.New(rand.NewPCG(16, 4)) //nolint:gosec // spreads the streams
	for i := range l.streams {
		wait := time.Duration(random.Int64N(int64(l.each)))
		s.running.Go(func() {
			time.Sleep(wait)
			for ctx.Err() == nil && s.failures[i] == nil {
				s.failures[i] = caught(func() { s.read(ctx, &s.samples[i]) })
			}
		})
	}
	return s
}

// stop breaks the streams off, and returns what they saw.
func (s *streamer) stop() (all tapSample) {
	s.cancel()
	s.running.Wait()
	s.client.CloseIdleConnections()
	for _, sample := range s.samples {
		all.add(sample)
	}
	try(errors.Join(s.failures...))
	return all
}

// read reads one stream. One that stop breaks off is no error.
func (s *streamer) read(ctx context.Context, sample *tapSample) {
	request := must(http.NewRequestWithContext(ctx, http.MethodPost, s.url,
		strings.NewReader(`{"model":"bench","stream":true,"messages":[{"role":"user","content":"go"}]}`)))
	request.Header.Set("Content-Type", "application/json")
	requested := time.Now()
	response, err := s.client.Do(request)
	if err == nil {
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			try(errors.New(response.Status))
		}
		err = s.chunks(bufio.NewReader(response.Body), requested, sample)
	}
	if ctx.Err() == nil {
		try(err)
	}
}

func (s *streamer) chunks(body *bufio.Reader, requested time.Time, sample *tapSample) error {
	for first := true; ; {
		line, err := body.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("a stream ended without its end marker: %w", err)
		}
		now := time.Now()
		sent, ok := stampAfter(line, sentKey)
		switch {
		case bytes.HasPrefix(line, []byte("data: [DONE]")):
			return nil
		case !ok || now.Before(s.from) || now.After(s.to):
		case first:
			received, _ := stampAfter(line, receivedKey)
			sample.first = append(sample.first, float64(received-requested.UnixNano()+now.UnixNano()-sent)/1e9)
			fallthrough
		default:
			sample.chunk = append(sample.chunk, float64(now.UnixNano()-sent)/1e9)
		}
		first = first && !ok
	}
}
