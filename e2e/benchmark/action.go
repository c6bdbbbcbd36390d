// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// action sends one request to a Collector over one of the connections and waits for
// the response. All bodies are encoded beforehand, so that the driver does not slow
// the Collector down.
type action func(c *collectorProcess, connection int)

// repeat runs the action a number of times, divided among all connections.
func (do action) repeat(c *collectorProcess, times int) {
	var group sync.WaitGroup
	failures := make([]error, connections)
	for connection := range connections {
		group.Go(func() {
			failures[connection] = caught(func() {
				for i := connection; i < times; i += connections {
					do(c, connection)
				}
			})
		})
	}
	group.Wait()
	try(errors.Join(failures...))
}

// send sends a body over one of the connections.
type send func(c *collectorProcess, connection int, body []byte)

// bodySequence holds the bodies that each connection sends in turn.
type bodySequence [connections][][]byte

// inTurn returns an action that sends the bodies of each connection in turn, with new IDs
// in each turn. Equal bodies of two connections get different IDs.
func (bodies bodySequence) inTurn(do send) action {
	var numbered [connections][]*numberedBody
	for connection := range bodies {
		for _, body := range bodies[connection] {
			numbered[connection] = append(numbered[connection], newNumberedBody(body, connection*10_000_000))
		}
	}
	var next [connections]int
	return func(c *collectorProcess, connection int) {
		body := numbered[connection][next[connection]%len(numbered[connection])]
		next[connection]++
		do(c, connection, body.next())
	}
}

// same returns the same body for all connections.
func same(body []byte) (bodies bodySequence) {
	for i := range bodies {
		bodies[i] = [][]byte{body}
	}
	return bodies
}

// post sends a body over HTTP.
func post(target, contentType string) send {
	return func(c *collectorProcess, _ int, body []byte) {
		readResponse(must(c.client.Post("http://"+c.http+target, contentType, bytes.NewReader(body))))
	}
}

// call sends a body to a gRPC method.
func call(method string) send {
	return func(c *collectorProcess, connection int, body []byte) {
		var response []byte
		try(c.calls[connection].Invoke(context.Background(), method, body, &response, grpc.ForceCodecV2(rawCodec{})))
	}
}

// overOneCall returns an action that sends a number of bodies in turn over one call of a
// client-streaming gRPC method, and waits for the response.
func (bodies bodySequence) overOneCall(method string, messages int) action {
	var streams [connections]grpc.ClientStream
	next := bodies.inTurn(func(_ *collectorProcess, connection int, body []byte) {
		// gRPC may still read the message when the next turn changes the IDs. Of an error, the
		// response has the reason.
		_ = streams[connection].SendMsg(bytes.Clone(body))
	})
	return func(c *collectorProcess, connection int) {
		description := &grpc.StreamDesc{ClientStreams: true}
		streams[connection] = must(c.calls[connection].NewStream(context.Background(), description, method, grpc.ForceCodecV2(rawCodec{})))
		for range messages {
			next(c, connection)
		}
		var response []byte
		try(errors.Join(streams[connection].CloseSend(), streams[connection].RecvMsg(&response)))
	}
}

// scrape requests the published metrics in a format.
func scrape(accept string) action {
	return func(c *collectorProcess, _ int) { c.get(c.scrape, "/metrics", accept) }
}

// rawCodec is a gRPC codec for messages that are already encoded.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(message.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, message any) error {
	*message.(*[]byte) = data.Materialize()
	return nil
}

// idMark is the part of each ID of a load that differs in each request, because token_sli
// counts a request once. It has the length of a number as numberedBody writes it.
const idMark = "########"

// numberedBody is an encoded body with a number in each of its IDs. Writing a number is
// much cheaper than encoding, so the driver does not slow the Collector down.
type numberedBody struct {
	body   []byte
	places []int // of the number
	sent   int
}

func newNumberedBody(body []byte, first int) *numberedBody {
	n := &numberedBody{body: bytes.Clone(body), sent: first}
	for at := 0; ; at += len(idMark) {
		i := bytes.Index(body[at:], []byte(idMark))
		if i < 0 {
			return n
		}
		at += i
		n.places = append(n.places, at)
	}
}

// next returns the body with the next number. It is valid until the next call.
func (n *numberedBody) next() []byte {
	number := fmt.Appendf(nil, "%0*d", len(idMark), n.sent)
	for _, at := range n.places {
		copy(n.body[at:], number)
	}
	n.sent++
	return n.body
}
