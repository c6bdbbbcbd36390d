// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package spanfile reads spans from files in OTLP: those of the Collector's file exporter
// in each of its formats, JSON lines of other writers, JSON documents, and protobuf.
package spanfile

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/filekind"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/openfile"
)

// maxMessageBytes bounds a message, before and after its decompression. It bounds memory,
// because a reader holds one message. A batch of 8192 spans with timelines has 20 MB.
const maxMessageBytes = 64 << 20

var errTooLarge = fmt.Errorf("the message is larger than %d MiB; write fewer spans at once, as with send_batch_max_size of the batch processor", maxMessageBytes>>20)

// Sink takes what Read finds.
type Sink struct {
	// Traces takes each message with its spans, which it may keep. An error ends Read.
	Traces func(ptrace.Traces) error
	// Damaged takes an error for each damaged message, with its file and line or number.
	// Read continues after it, unless Damaged returns an error.
	Damaged func(error) error
}

// Counts are the messages of a file. A message is what the file exporter wrote at once,
// which is a line of JSON lines.
type Counts struct {
	Traces  int // messages that Sink.Traces got
	Other   int // messages of metrics, logs or profiles, which are skipped
	Damaged int // messages that Sink.Damaged got
}

// Read reads a file to its end. It returns an error if the file is of another kind, an
// error of the sink, and that of ctx, which it checks before each message.
func Read(ctx context.Context, file *openfile.File, sink Sink) (Counts, error) {
	r := &reader{ctx: ctx, file: file, sink: sink, limit: maxMessageBytes}
	err := r.read()
	return r.counts, err
}

// reader reads one file.
type reader struct {
	ctx    context.Context
	file   *openfile.File
	sink   Sink
	limit  int // bytes of a message
	counts Counts
	buffer []byte // a message of protobuf
}

func (r *reader) read() error {
	prefix := r.file.Prefix()
	format := detect(prefix)
	if err := r.ctx.Err(); err != nil { // a pipe may have blocked
		return err
	}
	var err error
	switch format {
	case jsonDocuments:
		err = r.readJSON()
	case lengthPrefixed:
		err = r.readMessages(r.nextPrefixed)
	case bareProtobuf:
		err = r.readMessages(r.nextField)
	default:
		return filekind.Error(r.file.Name(), prefix, "expected spans in OTLP (JSON lines or protobuf of the Collector's file exporter), token events, or results of a benchmark")
	}
	if err == nil && r.counts.Traces == 0 && r.counts.Damaged == 0 && r.counts.Other > 0 {
		return &filekind.Other{Text: r.file.Name() + ": has only metrics, logs or profiles in OTLP; give the file of a file exporter in a traces pipeline"}
	}
	return err
}

// message passes a message on. It has no traces if it is of other signals.
func (r *reader) message(traces *ptrace.Traces) error {
	if traces == nil {
		r.counts.Other++
		return nil
	}
	r.counts.Traces++
	return r.sink.Traces(*traces)
}

// damaged reports a message that cannot be read.
func (r *reader) damaged(place string, damage error) error {
	if err := r.ctx.Err(); err != nil { // it is the reason of the damage
		return err
	}
	r.counts.Damaged++
	return r.sink.Damaged(fmt.Errorf("%s%s: %w", r.file.Name(), place, damage))
}
