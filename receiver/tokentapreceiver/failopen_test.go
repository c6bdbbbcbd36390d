// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// transportFunc is a transport to an upstream.
type transportFunc func(req *http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// bodyFunc calls a function before each read of a body.
type bodyFunc struct {
	io.ReadCloser
	before func()
}

func (b bodyFunc) Read(p []byte) (int, error) {
	b.before()
	return b.ReadCloser.Read(p)
}

// Whatever part of the observation panics, the exchange is forwarded. The span and a self-metric say that it was not read.
func TestFailOpen_ForwardsWhatPanics(t *testing.T) {
	openDecoders["panics"] = func(io.Reader, func(int64) error) (io.ReadCloser, error) { panic("text of the answer") }
	t.Cleanup(func() { delete(openDecoders, "panics") })
	for name, c := range map[string]struct {
		encoding string
		breaks   func(p *tap)
	}{
		"as the answer begins": {"", func(p *tap) {
			upstream, cfg := p.receiver.routes[0].upstream, p.receiver.cfg
			p.receiver.routes[0].upstream = transportFunc(func(req *http.Request) (*http.Response, error) {
				response, err := upstream.RoundTrip(req)
				if err == nil {
					p.receiver.cfg = nil // makes what reads the limits panic
					response.Body = bodyFunc{response.Body, func() { p.receiver.cfg = cfg }}
				}
				return response, err
			})
		}},
		"within the answer":      {"panics", func(*tap) {}},
		"as the request is read": {"", func(p *tap) { p.receiver.telemetry.ReceiverTokenTapRequestsTruncated = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				if c.encoding != "" {
					w.Header().Set("Content-Encoding", c.encoding)
				}
				stream(w)(chatAnswer(3))
			})
			c.breaks(p)
			request := chatRequest + numbered(maxRequestCopy) // truncated
			response, body := p.post(chatPath, request)
			require.Equal(t, http.StatusOK, response.StatusCode)
			require.Equal(t, chatAnswer(3), body)
			all := attributesOf(p.span())
			require.Equal(t, []any{"panic"}, all["tokenpulse.tap.unparsed"])
			require.Equal(t, "success", all["tokenpulse.outcome"])
			require.EqualValues(t, 1, p.counter("unparsed"))
			require.NotContains(t, fmt.Sprint(p.logs.All()), "text of the answer")
		})
	}
}

func TestFailOpen_ForwardsAConnectionWhoseBeginningPanics(t *testing.T) {
	p := start(t, answerChat)
	x := p.observeUpgrade(t)
	body := struct{ io.ReadWriteCloser }{}
	response := &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: http.Header{"Upgrade": {"websocket"}}, Body: body, Request: x.request}
	cfg := p.receiver.cfg
	p.receiver.cfg = nil
	err := x.answer(response)
	p.receiver.cfg = cfg
	require.NoError(t, err)
	require.Equal(t, body, response.Body)
	x.finish()
	require.Zero(t, p.receiver.open.Load())
	require.EqualValues(t, 1, p.counter("unparsed"))
}

func TestFailOpen_ForwardsAClientWhoseRequestsPanic(t *testing.T) {
	p := start(t, answerChat)
	p.receiver.telemetry.ReceiverTokenTapRequestsUnobserved = nil // for requests beyond 16
	x, connection, upstream := upgraded(t, p)
	sent := bytes.Repeat(frame(responseCreate, true), 17)
	go func() {
		for piece := range slices.Chunk(sent, 1000) {
			_, _ = connection.Write(piece)
		}
		_ = connection.Close()
	}()
	got, err := io.ReadAll(upstream)
	require.NoError(t, err)
	require.Equal(t, sent, got)
	x.finish()
	require.EqualValues(t, 1, p.counter("unparsed"))
	for _, span := range p.spansAfter(16) {
		require.Equal(t, []any{"panic"}, attributesOf(span)["tokenpulse.tap.unparsed"])
	}
}

// Traffic does not wait for the decoder: the client has a part of an answer while that is still being decoded.
func TestFailOpen_ForwardsAPartBeforeItIsDecoded(t *testing.T) {
	const events = 20 // more than wait for others
	first := strings.Repeat(tokenEvent, events)
	entered, release := make(chan struct{}), make(chan struct{})
	openDecoders["stalls"] = func(r io.Reader, _ func(int64) error) (io.ReadCloser, error) {
		close(entered)
		<-release
		return io.NopCloser(r), nil
	}
	t.Cleanup(func() { delete(openDecoders, "stalls") })
	p := start(t, func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Encoding", "stalls")
		send := stream(w)
		send(first)
		select {
		case <-release:
			send(finishEvent + doneEvent)
		case <-req.Context().Done():
		}
	})
	unblock := sync.OnceFunc(func() { close(release) })
	defer unblock()
	response := p.open(chatPath, chatRequest)
	part := make([]byte, len(first))
	_, err := io.ReadFull(response.Body, part)
	require.NoError(t, err)
	require.Equal(t, first, string(part))
	<-entered
	require.Zero(t, p.spans.SpanCount())
	unblock()
	rest, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, finishEvent+doneEvent, string(rest))
	times, _ := arrivals(t, p.span())
	require.Len(t, times, events)
}

// stallingCounter is a self-metric that blocks.
type stallingCounter struct {
	noop.Int64Counter
	entered, release chan struct{}
}

func (c stallingCounter) Add(context.Context, int64, ...metric.AddOption) {
	close(c.entered)
	<-c.release
}

// While what the client sent is being decoded, the answers of the server are forwarded and timed.
func TestFailOpen_ForwardsTheServerWhileTheClientIsDecoded(t *testing.T) {
	p := start(t, answerChat)
	stalled := stallingCounter{entered: make(chan struct{}), release: make(chan struct{})}
	p.receiver.telemetry.ReceiverTokenTapRequestsUnobserved = stalled // for requests beyond 16
	_, connection, upstream := upgraded(t, p)
	sent := bytes.Repeat(frame(responseCreate, true), 17)
	go func() { _, _ = connection.Write(sent) }()
	<-stalled.entered
	release := sync.OnceFunc(func() { close(stalled.release) })
	defer time.AfterFunc(time.Minute, func() {
		t.Error("the answers waited for the decoder of the client")
		release()
	}).Stop()
	answers := [][]byte{frame(responseCreated, false), frame(responseDelta, false), frame(responseDone, false)}
	go func() {
		for _, answer := range answers {
			_, _ = upstream.Write(answer)
		}
	}()
	for _, answer := range answers {
		got := make([]byte, len(answer))
		_, err := io.ReadFull(connection, got)
		require.NoError(t, err)
		require.Equal(t, answer, got)
	}
	go func() { _, _ = connection.Read(make([]byte, 1)) }() // decodes the last one
	require.Equal(t, "success", attributesOf(p.span())["tokenpulse.outcome"])
	release()
	got := make([]byte, len(sent))
	_, err := io.ReadFull(upstream, got)
	require.NoError(t, err)
	require.Equal(t, sent, got)
	require.NoError(t, connection.Close())
}
