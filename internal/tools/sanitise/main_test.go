// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
)

const frames = "eventstream_frame"

// frameOf returns a frame that says these lengths of itself and its headers.
func frameOf(total, headers uint32, rest string) []byte {
	frame := binary.BigEndian.AppendUint32(nil, total)
	frame = binary.BigEndian.AppendUint32(frame, headers)
	frame = append(frame, make([]byte, 4)...) // the prelude's checksum, which stays
	frame = append(frame, rest...)
	return binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
}

func TestSanitise_FramesGetNewChecksums(t *testing.T) {
	const text, without = `{"text":"Hello 12"}`, `{"text":"Xxxxx 00"}`
	recorded := append(frameOf(35, 0, text), frameOf(38, 3, "abc"+text)...)
	expected := append(frameOf(35, 0, without), frameOf(38, 3, "abc"+without)...)
	body, err := sanitise(frames, recorded)
	if err != nil || !bytes.Equal(body, expected) {
		t.Fatalf("%q, %v; expected %q", body, err, expected)
	}
}

func TestSanitise_DamagedFramesAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		frame    []byte
		expected string
	}{
		"no length":                 {frameOf(0, 0, ""), "a frame of 0 bytes cannot have 0 bytes of headers"},
		"shorter than its checksum": {frameOf(15, 0, ""), "a frame of 15 bytes cannot"},
		"headers beyond the end":    {frameOf(18, 3, "{}"), "a frame of 18 bytes cannot have 3 bytes of headers"},
		"headers of 4 GiB":          {frameOf(18, 1<<32-1, "{}"), "4294967295 bytes of headers"},
		"cut":                       {frameOf(19, 0, "{}"), "unexpected EOF"},
		"cut in the prelude":        {make([]byte, 15), "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := sanitise(frames, c.frame); err == nil || !strings.Contains(err.Error(), c.expected) {
				t.Fatalf("error %v; expected one with %q", err, c.expected)
			}
		})
	}
}

// The media type of audio says how long it is.
func TestSanitise_KeepsMediaTypes(t *testing.T) {
	const part = `{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"AbC1"}}`
	body, err := sanitise("json_document", []byte(part))
	if want := `{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"XxX0"}}`; err != nil || string(body) != want {
		t.Fatalf("%q, %v; expected %q", body, err, want)
	}
}
