// Package recording reads streams that were measured before: the NDJSON events
// that a service posts to the token_stream receiver, and the per-request export
// of the benchmark tool AIPerf.
package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
)

// MaxLineBytes bounds a line of a recording. An AIPerf line holds a whole
// request: this is room for more than a million chunks.
const MaxLineBytes = 32 << 20

// reader turns lines into streams.
type reader interface {
	read(line []byte) error
	streams() []*stream.Stream
}

// Read reads a recording, in the format that its first line is in, and returns
// its streams in the order in which they started. An error names the line.
func Read(r io.Reader) ([]*stream.Stream, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLineBytes)
	var format reader
	number := 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if format == nil {
			var err error
			if format, err = detect(line); err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
		}
		if err := format.read(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d: longer than %d MiB; a recording holds one event or one request a line", number+1, MaxLineBytes>>20)
	} else if err != nil {
		return nil, err
	}
	if format == nil {
		return nil, errors.New("the recording is empty")
	}
	streams := format.streams()
	slices.SortStableFunc(streams, func(a, b *stream.Stream) int { return cmp.Compare(a.Start, b.Start) })
	return streams, nil
}

func detect(line []byte) (reader, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(line, &keys); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if _, ok := keys["event"]; ok {
		return newEvents(), nil
	}
	if _, ok := keys["metadata"]; ok {
		return &aiperf{}, nil
	}
	return nil, errors.New(`neither a token event (which has an "event" key) nor an AIPerf profile_export.jsonl record (which has a "metadata" key)`)
}
