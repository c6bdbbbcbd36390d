// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanfile

import (
	"bytes"
	"encoding/binary"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/openfile"
)

// lengthBytes is the size of the length before each message of the file exporter.
const lengthBytes = 4

type format int

const (
	unknown format = iota
	jsonDocuments
	lengthPrefixed // protobuf or compressed messages, each after its length
	bareProtobuf   // an ExportTraceServiceRequest
)

// Is reports whether Read accepts a file that begins with prefix, or that consists of it if
// it is shorter than openfile.PrefixBytes. An empty file has no messages, and is accepted.
func Is(prefix []byte) bool { return detect(prefix) != unknown }

// detect returns the format. Protobuf comes before JSON: its first bytes may be white space
// and a brace, while JSON never has the nested lengths of protobuf.
func detect(prefix []byte) format {
	switch {
	case len(bytes.TrimSpace(prefix)) == 0:
		return jsonDocuments
	case isLengthPrefixed(prefix):
		return lengthPrefixed
	case isBareProtobuf(prefix):
		return bareProtobuf
	case isJSON(bytes.TrimSpace(bytes.TrimPrefix(prefix, byteOrderMark))):
		return jsonDocuments
	default:
		return unknown
	}
}

// isLengthPrefixed reports whether the prefix begins with messages of the file exporter. The
// first ones may be empty.
func isLengthPrefixed(prefix []byte) bool {
	const shortest = lengthBytes + 4 // to recognise a message
	for len(prefix) >= shortest {
		size := binary.BigEndian.Uint32(prefix)
		prefix = prefix[lengthBytes:]
		if size > 0 {
			begin := prefix[:min(len(prefix), int(size))]
			return size <= maxMessageBytes && (openfile.IsZstd(begin) || begin[0] == '{' || isBareProtobuf(begin))
		}
	}
	return prefix[0] <= maxMessageBytes>>24 // the file ends early
}

const (
	// tagResourceSpans begins each field of TracesData. MetricsData, LogsData and
	// ProfilesData are alike.
	tagResourceSpans = 1<<3 | byte(protowire.BytesType)

	lastFieldOfResourceSpans = 3
	lastFieldOfResource      = 3
)

// isBareProtobuf reports whether the prefix begins with a ResourceSpans. It looks into the
// first field of that, because text may begin with the same two bytes.
func isBareProtobuf(prefix []byte) bool {
	if prefix[0] != tagResourceSpans {
		return false
	}
	spans, size, ok := enter(prefix[1:], maxMessageBytes)
	if !ok || len(spans) == 0 {
		return ok
	}
	number, kind, n := protowire.ConsumeTag(spans)
	if n < 0 || number > lastFieldOfResourceSpans || kind != protowire.BytesType {
		return false
	}
	resource, _, ok := enter(spans[n:], size-n)
	if !ok || len(resource) == 0 || number != 1 {
		return ok
	}
	number, kind, n = protowire.ConsumeTag(resource)
	return n > 0 && number <= lastFieldOfResource && (kind == protowire.BytesType || kind == protowire.VarintType)
}

// enter returns the content of a field that begins with its length, as far as b has it, and
// that length. It is not ok if the length is above limit.
func enter(b []byte, limit int) (content []byte, size int, ok bool) {
	length, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return nil, 0, len(b) < protowire.SizeVarint(maxMessageBytes) // the file ends early
	}
	if length > uint64(limit) {
		return nil, 0, false
	}
	return b[n:min(len(b), n+int(length))], int(length), true
}

var (
	byteOrderMark = []byte("\ufeff") // which some programs on Windows write

	// beginOfSpans begins a document and is nowhere else in one.
	beginOfSpans = []byte(`{"resourceSpans"`)
	keyOfSpans   = beginOfSpans[1:]
	keysOfOthers = [][]byte{[]byte(`"resourceMetrics"`), []byte(`"resourceLogs"`), []byte(`"resourceProfiles"`)}
	keysOfASpan  = [][]byte{[]byte(`"traceId":`), []byte(`"spanId":`), []byte(`"startTimeUnixNano":`)}
)

// isJSON reports whether the text begins with documents in OTLP. The first line may lack its
// beginning, as after a rotation in the middle of a line.
func isJSON(text []byte) bool {
	if text[0] == '{' {
		key := firstKey(text)
		begins := func(with []byte) bool { return bytes.HasPrefix(with, key) } // the text may end within the key
		if begins(keyOfSpans) || slices.ContainsFunc(keysOfOthers, begins) || bytes.HasPrefix(text, []byte("{}")) {
			return true
		}
	}
	if _, next, ok := bytes.Cut(text, []byte("\n")); ok {
		return bytes.HasPrefix(next, beginOfSpans)
	}
	missing := func(key []byte) bool { return !bytes.Contains(text, key) }
	return text[0] != '{' && text[0] != '[' && !slices.ContainsFunc(keysOfASpan, missing)
}

// firstKey returns the first key of an object with its quotes, as far as text has it.
func firstKey(text []byte) []byte {
	key := bytes.TrimLeft(text[1:], " \t\r\n")
	if len(key) > 0 && key[0] == '"' {
		if end := bytes.IndexByte(key[1:], '"'); end >= 0 {
			return key[:end+2]
		}
	}
	return key
}
