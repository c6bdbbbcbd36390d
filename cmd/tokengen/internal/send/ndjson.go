package send

import (
	"context"
	"errors"
	"io"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
)

// ndjson is a POST whose body is still being written.
type ndjson struct {
	body    *io.PipeWriter
	buffer  []byte
	invalid error // of an event that no JSON can be made of
	cancel  context.CancelFunc
	done    chan struct{} // closed when said and err are there
	said    answer
	err     error
}

var errAnswered = errors.New("the receiver answered before the body ended")

// openNDJSON begins a POST. The request outlives ctx, which may be cancelled
// while streams still have to be ended: tell and answer have contexts of their own.
func (c *httpClient) openNDJSON(ctx context.Context) (conversation, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	reader, writer := io.Pipe()
	n := &ndjson{body: writer, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(n.done)
		n.said, n.err = c.post(ctx, contentTypeNDJSON, reader)
		_ = reader.CloseWithError(errAnswered) // so that no writer waits for a reader
	}()
	return n, nil
}

func (n *ndjson) tell(ctx context.Context, parts []stream.Part) error {
	n.buffer = n.buffer[:0]
	for _, p := range parts {
		if n.buffer, n.invalid = p.AppendNDJSON(n.buffer); n.invalid != nil {
			return n.invalid
		}
	}
	stop := context.AfterFunc(ctx, n.cancel)
	defer stop()
	_, err := n.body.Write(n.buffer) // net/http flushes every write of such a body
	return err
}

func (n *ndjson) answer(ctx context.Context) (answer, error) {
	defer n.cancel()
	stop := context.AfterFunc(ctx, n.cancel)
	defer stop()
	_ = n.body.Close()
	<-n.done
	if n.invalid != nil {
		return answer{}, n.invalid
	}
	return n.said, n.err
}
