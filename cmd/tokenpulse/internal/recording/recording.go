// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package recording reads recorded streams: NDJSON token events, and the
// per-request export of the benchmark tool AIPerf.
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

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// maxLineBytes bounds a line. An AIPerf line holds a whole request: the limit leaves
// room for more than a million chunks.
const maxLineBytes = 32 << 20

// reader reads the lines of one format.
type reader interface {
	read(line []byte) error
	streams() []*stream.Stream
}

// Read reads a recording and returns its streams in the order of their starts. The
// first line decides the format. Errors name the line.
func Read(r io.Reader) ([]*stream.Stream, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLineBytes)
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
		return nil, fmt.Errorf("line %d: longer than %d MiB; write one event or one request per line", number+1, maxLineBytes>>20)
	} else if err != nil {
		return nil, err
	}
	if format == nil {
		return nil, errors.New("the recording is empty; expected token events or an AIPerf profile_export.jsonl")
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
	return nil, errors.New(`unknown format; expected a token event (with the key "event") or an AIPerf profile_export.jsonl record (with the key "metadata")`)
}
