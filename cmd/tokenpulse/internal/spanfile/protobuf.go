// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/openfile"
)

var (
	errEndsEarly  = errors.New("the file ends within the message")
	errMisaligned = errors.New("no resource spans in protobuf begin here; the rest of the file is skipped")
)

// readMessages reads messages that next separates. Its errors are io.EOF at the end,
// errTooLarge of a message that it skipped, and others that end the file.
func (r *reader) readMessages(next func() ([]byte, error)) error {
	var decoder messageDecoder
	for number := 1; ; number++ {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		encoded, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		last := err != nil && !errors.Is(err, errTooLarge)
		var traces *ptrace.Traces
		if err == nil {
			traces, err = decoder.decode(encoded, r.limit)
		}
		if err != nil {
			err = r.damaged(fmt.Sprintf(": message %d", number), err)
		} else {
			err = r.message(traces)
		}
		if err != nil || last {
			return err
		}
	}
}

// nextPrefixed reads a message after its length.
func (r *reader) nextPrefixed() ([]byte, error) {
	header, err := r.file.Peek(lengthBytes)
	if len(header) > 0 {
		err = endsEarly(err)
	}
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(header)
	_, _ = r.file.Discard(lengthBytes) // they are buffered
	r.buffer = r.buffer[:0]
	return r.payload(uint64(size))
}

// nextField reads a field of a bare message. Each field is a message of its own, so that the
// file may be larger than the limit.
func (r *reader) nextField() ([]byte, error) {
	tag, err := r.file.ReadByte()
	if err != nil {
		return nil, err
	}
	if tag != tagResourceSpans {
		return nil, errMisaligned
	}
	size, err := binary.ReadUvarint(r.file)
	if err != nil {
		return nil, endsEarly(err)
	}
	r.buffer = binary.AppendUvarint(append(r.buffer[:0], tag), size)
	return r.payload(size)
}

// payload appends so many bytes to the buffer, and returns it.
func (r *reader) payload(size uint64) ([]byte, error) {
	if size > uint64(r.limit) {
		_, _ = r.file.Discard(int(min(size, math.MaxInt32))) // the next read returns the error
		return nil, errTooLarge
	}
	begin := len(r.buffer)
	r.buffer = slices.Grow(r.buffer, int(size))[:begin+int(size)]
	_, err := io.ReadFull(r.file, r.buffer[begin:])
	return r.buffer, endsEarly(err)
}

// endsEarly returns errEndsEarly for the end of a file within a message.
func endsEarly(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEndsEarly
	}
	return err
}

// messageDecoder decodes messages in protobuf, and in protobuf or JSON that zstd compressed.
type messageDecoder struct {
	zstd    *zstd.Decoder
	content []byte
}

// decode returns the spans of a message, or nil of one with other signals.
func (d *messageDecoder) decode(encoded []byte, limit int) (*ptrace.Traces, error) {
	if openfile.IsZstd(encoded) {
		var err error
		if encoded, err = d.decompress(encoded, limit); err != nil {
			return nil, err
		}
	}
	if len(encoded) > 0 && encoded[0] == '{' {
		return decodeJSON(encoded)
	}
	return decodeProtobuf(encoded)
}

func (d *messageDecoder) decompress(compressed []byte, limit int) (_ []byte, err error) {
	if d.zstd == nil {
		if d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit))); err != nil {
			return nil, err
		}
	}
	d.content, err = d.zstd.DecodeAll(compressed, d.content[:0])
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("the zstd data is damaged: %w", err)
	}
	return d.content, nil
}

// decodeProtobuf returns the spans of a message, or nil of metrics or logs, which begin
// alike. The decoder rejects theirs, because their fields have other types.
func decodeProtobuf(encoded []byte) (*ptrace.Traces, error) {
	if len(encoded) > shallowBytes && isTooDeep(encoded, maxDepth) {
		return nil, errTooDeep
	}
	traces, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(encoded)
	if err == nil {
		return &traces, nil
	}
	if _, other := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(encoded); other == nil {
		return nil, nil
	}
	if _, other := new(plog.ProtoUnmarshaler).UnmarshalLogs(encoded); other == nil {
		return nil, nil
	}
	return nil, fmt.Errorf("no spans in protobuf: %w", err)
}
