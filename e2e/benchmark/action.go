package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// action does one thing to a Collector and waits for the answer, over the
// connection of that number. All bytes were made beforehand: what the driver does
// must not slow the Collector down.
type action func(c *collectorProcess, connection int) error

// repeat does it so many times, over all connections.
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

// post sends each connection's own body.
func post(target, contentType string, bodies [connections][]byte) action {
	return func(c *collectorProcess, connection int) error {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+c.http+target, bytes.NewReader(bodies[connection]))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", contentType)
		_, err = c.answer(request)
		return err
	}
}

// call sends each connection's own body to a gRPC method.
func call(method string, bodies [connections][]byte) action {
	return func(c *collectorProcess, connection int) error {
		var answer []byte
		return c.calls[connection].Invoke(context.Background(), method, bodies[connection], &answer, grpc.ForceCodecV2(encoded{}))
	}
}

// scrape asks for the metrics in a format.
func scrape(accept string) action {
	return func(c *collectorProcess, _ int) error {
		_, err := c.get(c.scrape, accept)
		return err
	}
}

func (c *collectorProcess) get(address, accept string) ([]byte, error) {
	response, err := c.open(address, accept)
	if err != nil {
		return nil, err
	}
	return readAnswer(response)
}

// open asks for metrics. The answer is the caller's to read and to close.
func (c *collectorProcess) open(address, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	return c.client.Do(request)
}

func (c *collectorProcess) answer(request *http.Request) ([]byte, error) {
	response, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	return readAnswer(response)
}

func readAnswer(response *http.Response) ([]byte, error) {
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return answer, err
}

// encoded is the gRPC codec of messages that are bytes already.
type encoded struct{}

func (encoded) Name() string { return "proto" }

func (encoded) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(message.([]byte))}, nil
}

func (encoded) Unmarshal(data mem.BufferSlice, message any) error {
	*message.(*[]byte) = data.Materialize()
	return nil
}
