// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Command sanitise removes the text from a recorded answer of an LLM service, for the test data
// of receiver/tokentapreceiver/internal/llmstream.
//
//	sanitise UNIT <recording >sanitised
//
// UNIT is the chunk_unit of the recording in INDEX.json, such as sse_event. Unpack a recording
// that is compressed or has HTTP framing before.
//
// Every byte of structure stays. In JSON strings, except short identifiers under the
// names in kept, letters become x, digits 0, and other characters one of the same size
// in UTF-8, so that sizes and splits stay. So do the names in objects that the user
// defines, such as arguments. Numbers that encode text (token IDs, bytes) become ones.
// Base64 of event streams is sanitised inside, and their checksums are computed anew: a
// wrong one stays wrong. The messages that a client sent are removed.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: sanitise UNIT <recording >sanitised; UNIT is the chunk_unit of the recording in INDEX.json")
	}
	body, err := io.ReadAll(os.Stdin)
	if err == nil {
		body, err = sanitise(os.Args[1], body)
	}
	if err == nil {
		_, err = os.Stdout.Write(body)
	}
	if err != nil {
		log.Fatal("sanitise: ", err)
	}
}

func sanitise(unit string, body []byte) ([]byte, error) {
	switch unit {
	case "sse_event":
		sanitiseSSE(body)
	case "eventstream_frame":
		return body, sanitiseFrames(body)
	case "ws_message_received":
		return received(body)
	case "json_document", "json_array_element", "ndjson_line":
		sanitiseJSON(body)
	default:
		return nil, fmt.Errorf("unknown unit %q; valid units: sse_event, eventstream_frame, ws_message_received, "+
			"json_document, json_array_element, ndjson_line", unit)
	}
	return body, nil
}

// received keeps the messages of the server, one a line.
func received(lines []byte) ([]byte, error) {
	var kept []byte
	for line := range bytes.Lines(lines) {
		var message struct {
			Direction string
			Data      json.RawMessage
		}
		if err := json.Unmarshal(line, &message); err != nil {
			return nil, err
		}
		if message.Direction == "received" {
			sanitiseJSON(message.Data)
			kept = append(append(kept, message.Data...), '\n')
		}
	}
	return kept, nil
}

func sanitiseSSE(body []byte) {
	for len(body) > 0 {
		end := bytes.IndexAny(body, "\r\n")
		if end < 0 {
			end = len(body)
		}
		line := bytes.TrimPrefix(body[:end], []byte("\ufeff"))
		field, rest, _ := bytes.Cut(line, []byte(":"))
		switch string(field) {
		case "data":
			if string(bytes.TrimSpace(rest)) != "[DONE]" {
				sanitiseJSON(rest)
			}
		case "id":
			copy(rest, replace(rest))
		}
		body = body[min(end+1, len(body)):]
	}
}

// A frame of an AWS event stream has a prelude of 12 bytes, with its length and that of its headers, before the
// headers and the payload, and a checksum of 4 bytes behind them.
const preludeSize, checksumSize = 12, 4

func sanitiseFrames(body []byte) error {
	for len(body) > 0 {
		if len(body) < preludeSize+checksumSize {
			return io.ErrUnexpectedEOF
		}
		total, headers := uint64(binary.BigEndian.Uint32(body)), uint64(binary.BigEndian.Uint32(body[4:]))
		if total > uint64(len(body)) {
			return io.ErrUnexpectedEOF
		}
		if total < preludeSize+headers+checksumSize {
			return fmt.Errorf("a frame of %d bytes cannot have %d bytes of headers; record the answer again", total, headers)
		}
		frame := body[:total]
		summed, sum := frame[:total-checksumSize], frame[total-checksumSize:]
		wrong := binary.BigEndian.Uint32(sum) ^ crc32.ChecksumIEEE(summed)
		sanitiseJSON(summed[preludeSize+headers:])
		binary.BigEndian.PutUint32(sum, crc32.ChecksumIEEE(summed)^wrong)
		body = body[total:]
	}
	return nil
}
