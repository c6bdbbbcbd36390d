// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"strconv"
	"time"
)

// The length of audio follows from the number of its bytes, so that it is never decoded or kept: of base64, the characters
// are counted, and of those that jsonBuffer left out, their number is kept. It needs the bytes of a second, which an
// uncompressed format states. The length of MP3, Opus, AAC and FLAC is unknown.

// pcm16Rate is the number of bytes in a second of OpenAI's pcm16: 16 bits at 24 kHz, mono.
const pcm16Rate = 2 * 24_000

// byteRate returns the number of bytes in a second of mono audio with an encoding and a number of samples per second, or
// the usual one if that is 0. It is 0 for encodings without a constant rate.
func byteRate(encoding []byte, samples int64) int64 {
	switch string(encoding) {
	case "pcm16", "pcm", "audio/pcm":
		return 2 * cmp.Or(samples, pcm16Rate/2)
	case "g711_ulaw", "g711_alaw", "audio/pcmu", "audio/pcma":
		return cmp.Or(samples, 8_000)
	default:
		return 0
	}
}

// mediaTypeRate returns the number of bytes in a second of a media type that says it, such as audio/pcm;rate=24000 or
// audio/L16;codec=pcm;rate=24000, or 0.
func mediaTypeRate(mediaType []byte) int64 {
	kind, parameters, _ := bytes.Cut(mediaType, []byte(";"))
	kind = bytes.TrimSpace(kind)
	samples, channels := int64(0), int64(1)
	for len(parameters) > 0 {
		var parameter []byte
		parameter, parameters, _ = bytes.Cut(parameters, []byte(";"))
		name, number, _ := bytes.Cut(bytes.TrimSpace(parameter), []byte("="))
		n, err := strconv.ParseUint(string(number), 10, 24)
		switch {
		case err != nil:
		case bytes.EqualFold(name, []byte("rate")):
			samples = int64(n)
		case bytes.EqualFold(name, []byte("channels")):
			channels = int64(n)
		}
	}
	if samples == 0 || !bytes.EqualFold(kind, []byte("audio/pcm")) && !bytes.EqualFold(kind, []byte("audio/L16")) {
		return 0
	}
	return 2 * samples * channels
}

// headerRate returns the number of bytes in a second that the header of an answer with samples says, as that of SGLang does, or 0.
func headerRate(header http.Header) int64 {
	number := func(name string, otherwise int64) int64 {
		if n, err := strconv.ParseUint(header.Get(name), 10, 24); err == nil {
			return int64(n)
		}
		return otherwise
	}
	return number("X-Sample-Rate", 0) * number("X-Channels", 1) * number("X-Bit-Depth", 16) / 8
}

func isAudioType(mediaType []byte) bool {
	const prefix = "audio/"
	return len(mediaType) > len(prefix) && bytes.EqualFold(mediaType[:len(prefix)], []byte(prefix))
}

// durationOf returns the time that bytes at a rate above 0 take.
func durationOf(bytes, rate int64) time.Duration {
	return time.Duration(math.Round(float64(bytes) / float64(rate) * float64(time.Second)))
}

// maxWAVHeader is the number of first bytes in which the header of a WAV file is looked for.
const maxWAVHeader = 256

const riff, riffBase64 = "RIFF", "UklGR" // and its base64

// wavHeader returns the number of bytes in a second of a WAV file, and where its samples begin. Both are 0 if start, its
// first bytes, does not show them.
func wavHeader(start []byte) (rate, samples int64) {
	const chunks, chunkHead = 12, 8 // RIFF, a length, WAVE; then chunks of a name and a length
	for at := chunks; at+chunkHead <= len(start); {
		name, size := string(start[at:at+4]), binary.LittleEndian.Uint32(start[at+4:])
		at += chunkHead
		switch {
		case name == "data":
			return rate, int64(at)
		case size > maxWAVHeader:
			return 0, 0
		case name == "fmt " && at+12 <= len(start):
			rate = int64(binary.LittleEndian.Uint32(start[at+8:]))
		}
		at += int(size + size&1)
	}
	return 0, 0
}

// audio says that the current event carries audio in base64. record.byteRate is that of the audio, or 0.
func (r *record) audio(v value) {
	if !v.hasText() {
		return
	}
	r.channels |= Audio
	r.noTotals = true // running totals have the tokens of audio, too
	r.lastText, r.lastIsAudio = v, true
	r.lastLength = r.lengthOf(v)
	r.length += r.lastLength
}

// audioAgain replaces the last audio of a familiar event by that of the current one.
func (r *record) audioAgain(v value) {
	r.length -= r.lastLength
	r.length += r.lengthOf(v)
}

// lengthOf returns the length of audio in base64. If it is unknown, so is the sum.
func (r *record) lengthOf(v value) time.Duration {
	characters := base64Characters(v.raw())
	left, ok := r.event.omitted.from(r.event.data, v)
	header := int64(0)
	if bytes.HasPrefix(v.raw(), []byte(riffBase64)) {
		var start [maxWAVHeader]byte
		encoded := v.raw()[:min(len(v.raw()), base64.StdEncoding.EncodedLen(maxWAVHeader-1))/4*4]
		n, _ := base64.StdEncoding.Decode(start[:], encoded)
		r.byteRate, header = wavHeader(start[:n])
	}
	if r.byteRate == 0 || !ok {
		r.lengthUnknown = true
		return 0
	}
	return durationOf(max((characters+left)*3/4-header, 0), r.byteRate)
}

// base64Characters counts the characters of base64 in a JSON string, without padding.
func base64Characters(raw []byte) int64 {
	n := len(raw) - bytes.Count(raw, []byte("="))
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 || at+1 == len(raw) {
			return int64(n)
		}
		if n--; raw[at+1] == 'u' {
			n -= 4
		}
		raw = raw[at+2:]
	}
}

// maxOmitted is the number of strings of an event of which it is known how much was left out.
const maxOmitted = 8

// omissions says how many characters of base64 an elider left out of the strings of an event.
type omissions struct {
	strings [maxOmitted]omission
	n       int
	// lost is set if more was left out than that.
	lost bool
}

type omission struct {
	end        int // where the string's last quote is in the event
	characters int64
}

func (o *omissions) reset() { o.n, o.lost = 0, false }

func (o *omissions) add(left omission) {
	if o.n == maxOmitted {
		o.lost = true
		return
	}
	o.strings[o.n] = left
	o.n++
}

// moved returns o for an event that begins by bytes later in its buffer. It is nil if nothing was left out.
func (o *omissions) moved(by int) *omissions {
	if o.n == 0 && !o.lost {
		return nil
	}
	for i := range o.strings[:o.n] {
		o.strings[i].end -= by
	}
	return o
}

// from returns the number of characters that were left out of a string of the data of an event. ok is false if it is unknown.
func (o *omissions) from(data []byte, v value) (characters int64, ok bool) {
	if o == nil {
		return 0, true
	}
	end := cap(data) - cap(v) + len(v) - 1
	if o.lost || end < 0 || end >= len(data) || &data[end] != &v[len(v)-1] { // such as decoded JSON
		return 0, false
	}
	for _, left := range o.strings[:o.n] {
		if left.end == end {
			return left.characters, true
		}
	}
	return 0, true
}
