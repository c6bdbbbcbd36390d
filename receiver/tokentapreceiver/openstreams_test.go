// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// openStreams returns one text for each open stream, and the longest silence.
func (p *tap) openStreams() (all []string, longest time.Duration) {
	dimensions := series.DimensionsOf("gen_ai.provider.name", "gen_ai.request.model", "tenant.id", "server.address", "service.name", "tokenpulse.source")
	labels := spanreader.NewDimensions(dimensions)
	p.receiver.visitOpen(&labels, func(s *inprocess.OpenStream) {
		if s.Age < s.Silent || s.Decoding != (s.Tokens > 0) {
			p.t.Errorf("%v old, silent for %v, %d tokens", s.Age, s.Silent, s.Tokens)
		}
		all = append(all, fmt.Sprint(s.Vantage, " ", s.Decoding, " ", strings.Join(s.Dimensions, " ")))
		longest = max(longest, s.Silent)
	})
	return all, longest
}

func (p *tap) requireOpen(want ...string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		all, _ := p.openStreams()
		return slices.Equal(want, all)
	}, time.Minute, time.Millisecond, "%q", want)
}

// The service sends what the test says, and the header with the first of it.
func TestOpenStreams_AreSilentSinceTheLastToken(t *testing.T) {
	say := make(chan string)
	p := start(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for text := range say {
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
		}
	}, func(cfg *Config) {
		cfg.AttributesFromHeaders = map[string]string{"x-tenant-id": "tenant.id", "x-service": "service.name"}
	})
	answered := make(chan error)
	go func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+chatPath, strings.NewReader(`{"model":"asked","stream":true}`))
		if err == nil {
			request.Header.Set("X-Tenant-Id", "tenant-1")
			request.Header.Set("X-Service", "shop")
			var response *http.Response
			if response, err = http.DefaultClient.Do(request); err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		}
		answered <- err
	}()
	const labels = " openai asked tenant-1 127.0.0.1 shop "
	silentFor := func(atLeast time.Duration) {
		t.Helper()
		require.Eventually(t, func() bool { _, silence := p.openStreams(); return silence >= atLeast }, time.Minute, time.Millisecond)
	}
	p.requireOpen("gateway false" + labels) // the service has not answered
	silentFor(20 * time.Millisecond)
	for _, frame := range []string{roleEvent, ": keep-alive\n\n"} {
		say <- frame
	}
	silentFor(40 * time.Millisecond)
	p.requireOpen("gateway false" + labels)
	before := time.Now()
	say <- tokenEvent
	p.requireOpen("gateway true" + labels)
	_, silence := p.openStreams()
	require.LessOrEqual(t, silence, time.Since(before))
	silentFor(20 * time.Millisecond)
	before = time.Now()
	say <- tokenEvent
	require.Eventually(t, func() bool { _, silence := p.openStreams(); return silence <= time.Since(before) }, time.Minute, time.Millisecond)
	p.receiver.visitOpen(new(spanreader.Dimensions), func(s *inprocess.OpenStream) { require.EqualValues(t, 2, s.Tokens) })
	say <- finishEvent + usageEvent
	p.requireOpen("gateway true" + labels)
	say <- "data: [DONE]\n\n"
	p.requireOpen() // the stream has ended, though not the body
	close(say)
	require.NoError(t, <-answered)
	p.requireOpen()
}

// An exchange counts if it asks for a stream or gets one, and as long as it is read.
func TestOpenStreams_AreThoseOfModelCallsThatStream(t *testing.T) {
	for name, c := range map[string]struct {
		path, request, contentType, answer string
		change                             func(*Config)
		open                               []string
	}{
		"a stream":             {chatPath, chatRequest, "text/event-stream", tokenEvent, nil, []string{"gateway true openai gpt-x  127.0.0.1 unknown_service "}},
		"another API":          {"/v1/models/m-1", chatRequest, "application/json", `{"object":`, nil, nil},
		"one piece":            {chatPath, `{"model":"m-1"}`, "application/json", `{"id":`, nil, nil},
		"a stream unasked for": {chatPath, `{"model":"m-1"}`, "text/event-stream", tokenEvent, nil, []string{"gateway true openai m-1  127.0.0.1 unknown_service "}},
		"damaged":              {chatPath, chatRequest, "application/vnd.amazon.eventstream", "\x00\x00\x00\x10\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00" + tokenEvent, nil, nil},
		"beyond the memory":    {chatPath, chatRequest, "text/event-stream", "data: " + strings.Repeat("x", 2<<20), func(cfg *Config) { cfg.MaxMemoryMiB, cfg.MaxEventBytes = 1, 4<<20 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			end := make(chan struct{})
			change := []func(*Config){func(*Config) {}}
			if c.change != nil {
				change[0] = c.change
			}
			p := start(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", c.contentType)
				_, _ = io.WriteString(w, c.answer)
				_ = http.NewResponseController(w).Flush()
				<-end
			}, change...)
			defer close(end)
			response := p.open(c.path, c.request)
			_, err := io.ReadFull(response.Body, make([]byte, len(c.answer)))
			require.NoError(t, err)
			p.requireOpen(c.open...)
		})
	}
}

func TestOpenStreams_OfAConnectionAreItsOpenResponses(t *testing.T) {
	say := make(chan string)
	p := start(t, upgrade(func(connection net.Conn, _ *bufio.Reader) {
		for message := range say {
			_, _ = connection.Write(frame(message, false))
		}
	}), func(cfg *Config) { cfg.ServiceName = "chat-gateway" })
	connection, reader := connect(t, p)
	_, err := connection.Write(frame(responseCreate, true))
	require.NoError(t, err)
	hear := func(message string) {
		say <- message
		_, err := io.ReadFull(reader, make([]byte, len(frame(message, false))))
		require.NoError(t, err)
	}
	p.requireOpen()
	hear(responseCreated)
	p.requireOpen("gateway false openai gpt-r  127.0.0.1 chat-gateway ")
	hear(responseDelta)
	p.requireOpen("gateway true openai gpt-r  127.0.0.1 chat-gateway ")
	hear(responseDone)
	p.requireOpen()
	close(say)
}
