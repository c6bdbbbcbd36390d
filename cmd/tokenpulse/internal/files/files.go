// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package files reads the requests of files of any kind as spans.
package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/filekind"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/openfile"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/recording"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/spanfile"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/streamspan"
)

// Batch is some spans of the files.
type Batch struct {
	// Run names the file of a benchmark's results, whose requests share what differs between runs. It is empty for spans,
	// whose files may be parts of one run.
	Run    string
	Traces ptrace.Traces
}

// Options of Read.
type Options struct {
	// Named are the paths that the user named. Of other ones, which are in folders, files of other kinds are left out, unless all are.
	Named []string
	// Strict means that a damaged message is an error.
	Strict bool
	// Damaged is called with the first damaged messages of each file.
	Damaged func(error)
	// Bytes counts what was read of the files, before decompression. It may be nil.
	Bytes *atomic.Int64
}

// maxDamaged is the number of damaged messages of a file that Options.Damaged is called with. Further ones are counted.
const maxDamaged = 5

// Result counts what was read.
type Result struct {
	Files, Damaged int
	// Skipped are messages of metrics, logs or profiles.
	Skipped int
	// Notes are what the tools that recorded the streams do not say, and what a user should know of single files, a sentence
	// each. Those beyond maxNotes are left out.
	Notes []string
	// Partial means that the context was cancelled before the end.
	Partial bool
}

// Read calls consume with the spans of files, one batch after the other. Meanwhile, it decodes the next one, and no further
// ones, since a batch may be large. If ctx is cancelled, it returns what it read so far without an error.
func Read(ctx context.Context, paths []string, o Options, consume func(Batch) error) (Result, error) {
	r := &reader{options: o, batches: make(chan Batch), stop: make(chan struct{})}
	read := make(chan error, 1)
	go func() {
		defer close(r.batches)
		read <- r.read(ctx, paths)
	}()
	var failed error
	for batch := range r.batches {
		if failed == nil {
			if failed = consume(batch); failed != nil {
				close(r.stop)
			}
		}
	}
	err := <-read
	if failed != nil {
		return r.result, failed
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		r.result.Partial, err = true, nil
	}
	return r.result, err
}

// Size returns the number of bytes of files, or -1 if it is unknown.
func Size(paths []string) (size int64) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return -1
		}
		size += info.Size()
	}
	return size
}

type reader struct {
	options Options
	batches chan Batch
	stop    chan struct{} // closed if consume failed
	result  Result
}

// errStopped ends the reading after consume failed.
var errStopped = errors.New("consume failed")

func (r *reader) read(ctx context.Context, paths []string) error {
	var others []error
	for _, path := range paths {
		r.result.Files++
		err := r.readFile(ctx, path)
		if other := new(filekind.Other); errors.As(err, &other) && !r.options.Strict && !slices.Contains(r.options.Named, path) {
			r.result.Files--
			others = append(others, other)
			continue
		}
		if err != nil {
			return err
		}
	}
	switch {
	case len(others) == 0:
	case r.result.Files == 0:
		return others[0]
	case len(others) == 1:
		r.note("left out of the folder: " + others[0].Error())
	default:
		r.note(fmt.Sprintf("left out of the folders: %d files of other kinds, such as %v", len(others), others[0]))
	}
	return nil
}

func (r *reader) readFile(ctx context.Context, path string) error {
	file, err := openfile.Open(ctx, path, r.options.Bytes)
	if err != nil {
		return err
	}
	defer file.Close()
	beginning, _ := file.Peek(recording.DetectBytes) // an error returns with the next read
	if kind, ok := recording.Detect(beginning); ok {
		return r.readRecording(ctx, file, kind)
	}
	counts, err := spanfile.Read(ctx, file, spanfile.Sink{Traces: r.deliver(""), Damaged: r.damaged(ctx)})
	r.result.Skipped += counts.Other
	return err
}

// readRecording reads a file of recorded streams, and makes spans of them.
func (r *reader) readRecording(ctx context.Context, file *openfile.File, kind recording.Kind) error {
	for _, note := range kind.Notes() {
		r.note(note)
	}
	damaged := r.damaged(ctx)
	scanner := recording.Scanner{
		Damaged: func(err error) error { return damaged(fmt.Errorf("%s: %w", file.Name(), err)) },
		Warn:    func(warning string) { r.note(file.Name() + ": " + warning) },
	}
	batches := streamspan.Batches{Service: cmp.Or(kind.Client(), "recorded"), Yield: r.deliver(file.Name())}
	err := scanner.Scan(ctx, file, kind, batches.Add)
	if err == nil || ctx.Err() != nil {
		err = errors.Join(err, batches.Flush())
	}
	return err
}

// maxNotes limits Result.Notes.
const maxNotes = 100

func (r *reader) note(note string) {
	if len(r.result.Notes) < maxNotes && !slices.Contains(r.result.Notes, note) {
		r.result.Notes = append(r.result.Notes, note)
	}
}

// deliver returns what takes the spans of a run.
func (r *reader) deliver(run string) func(ptrace.Traces) error {
	return func(traces ptrace.Traces) error {
		select {
		case r.batches <- Batch{run, traces}:
			return nil
		case <-r.stop:
			return errStopped
		}
	}
}

// damaged returns what takes the damaged messages of a file.
func (r *reader) damaged(ctx context.Context) func(error) error {
	shown := 0
	return func(err error) error {
		switch {
		case ctx.Err() != nil: // which cut the message
			return ctx.Err()
		case r.options.Strict:
			return fmt.Errorf("%w; without --strict, damaged messages are left out and counted", err)
		case shown < maxDamaged:
			r.options.Damaged(err)
		}
		shown++
		r.result.Damaged++
		return nil
	}
}
