// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// file writes a recording: the body that NDJSON would send.
type file struct {
	out    io.WriteCloser
	writer *bufio.Writer
	line   []byte
}

// NewFile returns a Sender that writes a recording to out. Its Close closes out.
func NewFile(out io.WriteCloser) Sender {
	return &file{out: out, writer: bufio.NewWriter(out)}
}

func (f *file) Send(_ context.Context, parts []stream.Part) error {
	for _, p := range parts {
		var err error
		if f.line, err = p.AppendNDJSON(f.line[:0]); err != nil {
			return err
		}
		if _, err := f.writer.Write(f.line); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) Close(context.Context) error {
	return errors.Join(f.writer.Flush(), f.out.Close())
}
