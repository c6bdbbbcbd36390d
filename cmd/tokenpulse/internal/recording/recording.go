// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package recording reads recorded streams: NDJSON token events, and the per-request results of benchmark tools.
//
// Formats with one record per line are read line by line, other JSON one request after the other: memory holds what is
// open, not the file. A result of vLLM's or SGLang's benchmark has a list for each number, and is read whole.
//
// No text of prompts and answers is kept, nor any of an error message but the name of an exception and the HTTP status.
package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// maxLineBytes bounds a line. An AIPerf line holds a whole request: the limit leaves
// room for more than a million chunks.
const maxLineBytes = 32 << 20

// Scanner reads recordings, stream by stream.
type Scanner struct {
	// Damaged is called with the error of a record that cannot be read, which names its line or request. The scan goes
	// on without the record if Damaged returns nil, and ends with the error that it returns. Nil ends the scan with the
	// record's error.
	Damaged func(error) error
	// Warn is called with what a user should know of the file, such as that it holds a sample of the requests. It may be
	// nil.
	Warn func(string)

	ctx   context.Context //nolint:containedctx // of one scan
	yield func(*stream.Stream) error
}

// Scan reads a recording of the given kind and calls yield with each stream, in the order in which the file completes
// them. Streams without an end come last. An error of yield or the context ends the scan.
func (s Scanner) Scan(ctx context.Context, r io.Reader, k Kind, yield func(*stream.Stream) error) error {
	s.ctx, s.yield = ctx, yield
	switch k {
	case TokenEvents:
		return s.lines(r, newEvents())
	case AIPerf:
		return s.lines(r, aiperf{})
	case VLLMBench:
		return s.benchRuns(r, vllmBench)
	case SGLangBench:
		return s.benchRuns(r, sglangBench)
	case GuideLLM:
		return s.guidellm(r)
	case InferencePerf:
		return s.inferencePerf(r)
	default:
		return fmt.Errorf("unknown kind of recording: %d", k)
	}
}

// emit passes a stream on.
func (s *Scanner) emit(one *stream.Stream) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	return s.yield(one)
}

// damaged reports a record that cannot be read. It returns nil if the scan goes on.
func (s *Scanner) damaged(err error) error {
	if s.Damaged == nil {
		return err
	}
	return s.Damaged(err)
}

func (s *Scanner) warn(format string, args ...any) {
	if s.Warn != nil {
		s.Warn(fmt.Sprintf(format, args...))
	}
}

// lineReader reads the lines of one format.
type lineReader interface {
	// read returns the stream that a line completes, or nil.
	read(line []byte) (*stream.Stream, error)
	// open returns the streams that no line completed.
	open() []*stream.Stream
}

func (s *Scanner) lines(r io.Reader, format lineReader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLineBytes)
	number := 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		completed, err := format.read(line)
		if err != nil {
			err = s.damaged(fmt.Errorf("line %d: %w", number, err))
		} else if completed != nil {
			err = s.emit(completed)
		}
		if err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("line %d: longer than %d MiB; write one event or one request per line", number+1, maxLineBytes>>20)
	} else if err != nil {
		return err
	}
	for _, one := range format.open() {
		if err := s.emit(one); err != nil {
			return err
		}
	}
	return nil
}

// Read reads a recording of any kind and returns its streams in the order of their starts. The beginning decides the
// kind. The first record that cannot be read ends it; the error names its line or request.
func Read(ctx context.Context, r io.Reader) ([]*stream.Stream, error) {
	buffered := bufio.NewReaderSize(r, DetectBytes)
	prefix, err := buffered.Peek(DetectBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(bytes.TrimSpace(prefix)) == 0 {
		return nil, fmt.Errorf("the recording is empty; expected %s", Supported())
	}
	k, ok := Detect(prefix)
	if !ok {
		return nil, fmt.Errorf("unknown format; expected %s", Supported())
	}
	var streams []*stream.Stream
	if err := (Scanner{}).Scan(ctx, buffered, k, func(s *stream.Stream) error {
		streams = append(streams, s)
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortStableFunc(streams, func(a, b *stream.Stream) int { return cmp.Compare(a.Start, b.Start) })
	return streams, nil
}
