// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

// AppendNDJSON appends the part's events, one per line.
func (p Part) AppendNDJSON(dst []byte) ([]byte, error) {
	s := p.Stream
	id, err := json.Marshal(s.ID)
	if err != nil {
		return dst, fmt.Errorf("stream id %q: %w", s.ID, err)
	}
	if p.Start {
		if dst, err = appendEvent(dst, Event{
			Event: EventStart, StreamID: s.ID, TimeUnixNano: UnixNano(s.Start),
			TraceID: hex.EncodeToString(s.TraceID), SpanID: hex.EncodeToString(s.SpanID),
			ParentSpanID: hex.EncodeToString(s.ParentSpanID),
			Vantage:      s.Vantage.String(), Resource: s.ResourceAttributes(), Attributes: s.Attributes,
		}); err != nil {
			return dst, err
		}
	}
	if p.Scheduled {
		dst = append(appendHead(dst, EventScheduled, id, s.Scheduled), "}\n"...)
	}
	for _, c := range p.Chunks() {
		dst = appendChunk(dst, id, c)
	}
	if p.End {
		e := s.End
		return appendEvent(dst, Event{
			Event: EventEnd, StreamID: s.ID, TimeUnixNano: UnixNano(e.Time), Usage: e.Usage,
			FinishReason: e.FinishReason, Error: e.Error, Cancelled: e.Cancelled, Interrupted: e.Interrupted, Attributes: e.Attributes,
		})
	}
	return dst, nil
}

// appendChunk bypasses encoding/json, because most events are chunks: with it, writing a recording
// would take three times as long.
func appendChunk(dst, id []byte, c Chunk) []byte {
	dst = appendHead(dst, EventChunk, id, c.Time)
	dst = append(dst, `,"tokens":`...)
	dst = strconv.AppendUint(dst, uint64(c.Tokens), 10)
	dst = append(dst, `,"channel":"`...)
	dst = append(dst, c.Channel.String()...)
	dst = append(dst, '"')
	if c.Sequenced {
		dst = append(dst, `,"seq":`...)
		dst = strconv.AppendUint(dst, c.Sequence, 10)
	}
	return append(dst, "}\n"...)
}

func appendHead(dst []byte, event string, id []byte, time int64) []byte {
	dst = append(dst, `{"event":"`...)
	dst = append(dst, event...)
	dst = append(dst, `","stream_id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"time_unix_nano":"`...)
	dst = strconv.AppendInt(dst, time, 10)
	return append(dst, '"')
}

func appendEvent(dst []byte, event Event) ([]byte, error) {
	line, err := json.Marshal(event)
	if err != nil {
		return dst, err
	}
	return append(append(dst, line...), '\n'), nil
}
