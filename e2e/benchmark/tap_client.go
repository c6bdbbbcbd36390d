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
}

func (l tapLoad) String() string {
	return fmt.Sprintf("%d streams of %d chunks per second", l.streams, l.perSecond)
}

// tapSample holds what the clients saw, in seconds.
type tapSample struct {
	chunk []float64 // from the upstream's write to the client's read
	first []float64 // of the first chunk, and from the client's request to the upstream
}

func (s *tapSample) add(other tapSample) {
	s.chunk, s.first = append(s.chunk, other.chunk...), append(s.first, other.first...)
}

// streamer reads streams through one proxy.
type streamer struct {
	url      string
	client   http.Client
	from, to time.Time // what is read between them counts
}

// run keeps a load of streams open until s.to. At s.from, it calls begin.
func (l tapLoad) run(address string, lasts time.Duration, begin func() error) (all tapSample, err error) {
	every := time.Second / time.Duration(l.perSecond)
	s := streamer{
		url:    fmt.Sprintf("http://%s%s?chunks=%d&every=%s", address, streamPath, int(l.each/every), every),
		client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.streams, DisableCompression: true}},
		from:   time.Now().Add(l.each + time.Second), // each stream has begun, and each connection is open
	}
	s.to = s.from.Add(lasts)
	defer s.client.CloseIdleConnections()
	ctx, cancel := context.WithDeadline(context.Background(), s.to)
	defer cancel()
	samples, failures := make([]tapSample, l.streams), make([]error, l.streams)
	var running sync.WaitGroup
	for i := range l.streams {
		running.Go(func() {
			time.Sleep(rand.N(l.each)) //nolint:gosec // spreads the streams
			for ctx.Err() == nil && failures[i] == nil {
				failures[i] = s.read(ctx, &samples[i])
			}
		})
	}
	time.Sleep(time.Until(s.from))
	err = begin()
	running.Wait()
	for _, sample := range samples {
		all.add(sample)
	}
	return all, errors.Join(err, errors.Join(failures...))
}

// read reads one stream. One that the deadline cuts is no error.
func (s *streamer) read(ctx context.Context, sample *tapSample) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(`{"model":"bench","stream":true,"messages":[{"role":"user","content":"go"}]}`))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	requested := time.Now()
	response, err := s.client.Do(request)
	if err == nil {
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		err = s.chunks(bufio.NewReader(response.Body), requested, sample)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
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
