// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"errors"
	"io"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// ndjsonPost is an HTTP request whose body is still being written.
type ndjsonPost struct {
	body      *io.PipeWriter
	buffer    []byte
	encodeErr error

	// done is closed when response and err are set.
	done     chan struct{}
	response response
	err      error
}

var errResponded = errors.New("the receiver responded before the body ended")

func (c *httpClient) openNDJSON(ctx context.Context) (openRequest, error) {
	reader, writer := io.Pipe()
	p := &ndjsonPost{body: writer, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.response, p.err = c.post(ctx, contentTypeNDJSON, reader)
		_ = reader.CloseWithError(errResponded) // unblocks a writer
	}()
	return p, nil
}

func (p *ndjsonPost) send(parts []stream.Part) error {
	p.buffer = p.buffer[:0]
	for _, part := range parts {
		if p.buffer, p.encodeErr = part.AppendNDJSON(p.buffer); p.encodeErr != nil {
			return p.encodeErr
		}
	}
	_, err := p.body.Write(p.buffer) // net/http flushes each write to a pipe
	return err
}

func (p *ndjsonPost) finish() (response, error) {
	_ = p.body.Close()
	<-p.done
	if p.encodeErr != nil {
		return response{}, p.encodeErr
	}
	return p.response, p.err
}
