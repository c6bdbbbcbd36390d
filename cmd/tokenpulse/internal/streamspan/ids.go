// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// ids makes the IDs of spans. Those that a stream lacks follow from what it holds, its own ID included, so that a
// recording that is read twice, or is part of a longer one, results in the same spans.
type ids struct {
	of       *stream.Stream
	derived  [sha256.Size]byte
	resource *stream.Resource // of which seed is the encoding
	seed     []byte
}

func (i *ids) trace(s *stream.Stream) pcommon.TraceID {
	if len(s.TraceID) == 16 {
		return pcommon.TraceID(s.TraceID)
	}
	return pcommon.TraceID(i.derive(s)[:16])
}

func (i *ids) span(s *stream.Stream) pcommon.SpanID {
	if len(s.SpanID) == 8 {
		return pcommon.SpanID(s.SpanID)
	}
	return pcommon.SpanID(i.derive(s)[16:24])
}

func (i *ids) derive(s *stream.Stream) []byte {
	if i.of == s {
		return i.derived[:]
	}
	i.of = s
	h := sha256.New()
	writeText(h, s.ID)
	h.Write(s.TraceID)
	h.Write(s.SpanID)
	h.Write(s.ParentSpanID)
	h.Write(i.encoded(s.Resource))
	writeNumbers(h, s.Start, s.Scheduled, int64(len(s.Chunks)))
	for _, c := range s.Chunks {
		writeNumbers(h, c.Time, int64(c.Tokens)<<2|int64(c.Channel), int64(c.Sequence))
	}
	if end := s.End; end != nil {
		writeNumbers(h, 1, end.Time)
		writeText(h, end.Error)
		writeText(h, end.FinishReason)
		if end.Cancelled {
			writeNumbers(h, 1)
		}
	}
	h.Sum(i.derived[:0])
	return i.derived[:]
}

// encoded returns a resource's attributes as JSON, in the order of their keys.
func (i *ids) encoded(r *stream.Resource) []byte {
	if r != i.resource {
		i.resource, i.seed = r, nil
		if r != nil {
			i.seed, _ = json.Marshal(r.Attributes) // values that came from JSON; of others, nil will do
		}
	}
	return i.seed
}

func writeText(h hash.Hash, text string) {
	writeNumbers(h, int64(len(text)))
	h.Write([]byte(text))
}

func writeNumbers(h hash.Hash, numbers ...int64) {
	var b [8]byte
	for _, n := range numbers {
		binary.BigEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
}
