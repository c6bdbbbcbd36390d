// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package exposition encodes samples in the formats that Prometheus reads. It takes them series by series, as a
// walk over the series has them, and returns them family by family, as the formats have them.
//
// The samples of many series take gigabytes as messages, and as text. So a Builder encodes each at once, and keeps
// the result compressed: text in a twentieth of its size or less.
package exposition

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/klauspost/compress/s2"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Format is how a Body is encoded.
type Format struct {
	// Type is TypeTextPlain, TypeOpenMetrics or TypeProtoDelim.
	Type expfmt.FormatType
	// Gzip means that the Body is compressed for the client.
	Gzip bool
}

// blockSize is the number of encoded bytes that are compressed together, give or take a sample.
const blockSize = 64 << 10

// Builder makes a Body. Use it in one goroutine.
type Builder struct {
	format   Format
	families map[string]*family // by name
	scratch  []byte
	err      error
}

// NewBuilder returns a Builder without samples.
func NewBuilder(format Format) *Builder {
	return &Builder{format: format, families: map[string]*family{}}
}

// family holds the samples of a family so far.
type family struct {
	message dto.MetricFamily // of the sample that is encoded
	rest    dto.MetricFamily // as message, without the header
	raw     bytes.Buffer     // encoded, not compressed
	size    int              // bytes in blocks, uncompressed
	blocks  [][]byte
}

// Add adds a sample to the family of a header, which has no samples. The caller may then reuse the sample.
func (b *Builder) Add(header *dto.MetricFamily, sample *dto.Metric) {
	if b.err != nil {
		return
	}
	f := b.families[header.GetName()]
	first := f == nil
	if first {
		f = new(family)
		f.message.Name, f.message.Help, f.message.Type, f.message.Unit = header.Name, header.Help, header.Type, header.Unit
		f.message.Metric = make([]*dto.Metric, 1)
		f.rest.Metric = f.message.Metric
		b.families[header.GetName()] = f
	}
	f.message.Metric[0] = sample
	b.encode(f, first)
	if first { // further samples need none of it
		f.message.Help, f.message.Unit = nil, nil
	}
	if f.raw.Len() >= blockSize {
		b.compress(f)
	}
}

// encode encodes a sample, the first one of a family with the header.
func (b *Builder) encode(f *family, first bool) {
	from := f.raw.Len()
	switch b.format.Type {
	case expfmt.TypeTextPlain:
		_, b.err = expfmt.MetricFamilyToText(&f.raw, &f.message)
	case expfmt.TypeOpenMetrics:
		_, b.err = expfmt.MetricFamilyToOpenMetrics(&f.raw, &f.message, expfmt.WithCreatedLines())
	case expfmt.TypeProtoDelim:
		message := &f.message
		if !first { // parts of a message add up
			message = &f.rest
		}
		b.scratch, b.err = proto.MarshalOptions{}.MarshalAppend(b.scratch[:0], message)
		f.raw.Write(b.scratch)
		return
	default:
		b.err = fmt.Errorf("unknown format %d", b.format.Type)
	}
	if text := f.raw.Bytes()[from:]; !first && b.err == nil { // the line with the type
		f.raw.Truncate(from + copy(text, text[bytes.IndexByte(text, '\n')+1:]))
	}
}

func (b *Builder) compress(f *family) {
	f.size += f.raw.Len()
	f.blocks = append(f.blocks, b.block(f.raw.Bytes()))
	f.raw.Reset()
}

// block returns bytes compressed, in a slice of just their size.
func (b *Builder) block(raw []byte) []byte {
	b.scratch = slices.Grow(b.scratch[:0], s2.MaxEncodedLen(len(raw)))
	return bytes.Clone(s2.Encode(b.scratch[:cap(b.scratch)], raw))
}

// Body returns the samples, in the order of the names of their families. The Builder is of no use then.
func (b *Builder) Body() (*Body, error) {
	body := new(Body)
	for _, f := range slices.SortedFunc(maps.Values(b.families), func(x, y *family) int { return strings.Compare(x.message.GetName(), y.message.GetName()) }) {
		b.compress(f)
		if b.format.Type == expfmt.TypeProtoDelim {
			body.blocks = append(body.blocks, b.block(protowire.AppendVarint(nil, uint64(f.size))))
		}
		body.blocks = append(body.blocks, f.blocks...)
		body.size += f.size
	}
	if b.format.Type == expfmt.TypeOpenMetrics {
		body.blocks = append(body.blocks, b.block([]byte("# EOF\n")))
	}
	if b.err == nil && b.format.Gzip {
		b.err = body.gzip()
	}
	return body, b.err
}
