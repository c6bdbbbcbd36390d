// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// action sends one request to a Collector over one of the connections and waits for
// the response. All bodies are encoded beforehand, so that the driver does not slow
// the Collector down.
type action func(c *collectorProcess, connection int) error

// repeat runs the action a number of times, divided among all connections.
func (do action) repeat(c *collectorProcess, times int) error {
	var group sync.WaitGroup
	failures := make([]error, connections)
	for connection := range connections {
		group.Go(func() {
			for i := connection; i < times && failures[connection] == nil; i += connections {
				failures[connection] = do(c, connection)
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

// post sends each connection's body over HTTP, with new IDs each time.
func post(target, contentType string, bodies [connections][]byte) action {
	all := numbered(bodies)
	return func(c *collectorProcess, connection int) error {
		return postBody(c, target, contentType, all[connection].next())
	}
}

func postBody(c *collectorProcess, target, contentType string, body []byte) error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+c.http+target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", contentType)
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	_, err = readResponse(response)
	return err
}

// call sends each connection's body to a gRPC method, with new IDs each time.
func call(method string, bodies [connections][]byte) action {
	all := numbered(bodies)
	return func(c *collectorProcess, connection int) error {
		var response []byte
		return c.calls[connection].Invoke(context.Background(), method, all[connection].next(), &response, grpc.ForceCodecV2(rawCodec{}))
	}
}

// scrape requests the published metrics in a format.
func scrape(accept string) action {
	return func(c *collectorProcess, _ int) error {
		_, err := c.metrics(c.scrape, accept)
		return err
	}
}

// same returns the same body for all connections.
func same(body []byte) (bodies [connections][]byte) {
	for i := range bodies {
		bodies[i] = body
	}
	return bodies
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
