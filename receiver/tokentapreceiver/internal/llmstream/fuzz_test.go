// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

// found records what a framer reports.
type found []string

func (f *found) event(e event) {
	*f = append(*f, "event "+string(e.name)+" "+string(e.data))
}
func (f *found) tooLong() { *f = append(*f, "too long") }
func (f *found) invalid() { *f = append(*f, "invalid") }
func (f *found) corrupt() { *f = append(*f, "corrupt") }
func (f *found) tail()    { *f = append(*f, "tail") }

// held returns the bytes that a framer keeps between writes.
func held(f framer) int {
	switch f := f.(type) {
	case *sseFramer:
		return len(f.line.bytes) + len(f.data.bytes)
	case *linesFramer:
		return len(f.line.bytes)
	case *documentFramer:
		return len(f.text.bytes)
	case *awsFramer:
		return len(f.frame.bytes)
	case *webSocketFramer:
		return len(f.message.bytes)
	default:
		panic("unknown framer")
	}
}

// limitInFuzz is small, so that inputs reach it.
const limitInFuzz = 40

// pieces calls do with parts of the body of the given sizes, over and over.
func pieces(body, sizes []byte, do func([]byte)) {
	for i := 0; len(body) > 0; i++ {
		n := len(body)
		if len(sizes) > 0 {
			n = min(n, 1+int(sizes[i%len(sizes)]))
		}
		do(bytes.Clone(body[:n]))
		body = body[n:]
	}
}

// checkFramer requires that a framer keeps to its limit and that pieces do not matter.
func checkFramer(t *testing.T, create func() framer, body, sizes []byte) found {
	var whole, cut found
	f := create()
	f.write(body, &whole)
	f.end(&whole)
	f = create()
	pieces(body, sizes, func(p []byte) {
		f.write(p, &cut)
		require.LessOrEqual(t, held(f), limitInFuzz)
	})
	f.end(&cut)
	require.Equal(t, whole, cut)
	for _, e := range whole {
		require.LessOrEqual(t, len(e), len("event  ")+maxName+limitInFuzz)
	}
	return whole
}

func FuzzSSE(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: {\"a\":1}\r\n\r\n: c\ndata:b\ndata:c\n\ndata: [DONE]"), []byte{0, 3})
	f.Add([]byte("data: 0123456789012345678901234\ndata: 0123456789012345678901234\n\n"), []byte{0}) // each fits
	f.Add([]byte("data: "+string(make([]byte, limitInFuzz))+"\n\nid: 1\r\rerror: {}\n\n{\n}\n\n"), []byte{7})
	f.Fuzz(func(t *testing.T, body, sizes []byte) {
		checkFramer(t, func() framer { f := newSSEFramer(Limits{EventBytes: limitInFuzz}); return &f }, body, sizes)
	})
}

func FuzzJSONFramers(f *testing.F) {
	f.Add([]byte(`[{"a":"}\"\\"}`+"\n,\r\n"+`{"b":[{}]}]`), []byte{0})
	f.Add([]byte("{\"a\":1}\n\n{\"b\":2}\r\n{\"c"), []byte{5, 1})
	f.Add([]byte(`{"a":"0123456789012345678901234567890123456789"} x {"b":1}`), []byte{2})
	f.Fuzz(func(t *testing.T, body, sizes []byte) {
		checkFramer(t, func() framer { return &linesFramer{line: Limits{EventBytes: limitInFuzz}.jsonBuffer()} }, body, sizes)
		checkFramer(t, func() framer { return &documentFramer{text: Limits{EventBytes: limitInFuzz}.jsonBuffer()} }, body, sizes)
	})
}

// frame returns an AWS frame with correct checksums.
func frame(headers, payload []byte) []byte {
	total := preludeBytes + len(headers) + len(payload) + crcBytes
	b := binary.BigEndian.AppendUint32(nil, uint32(total))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func FuzzAWSEvents(f *testing.F) {
	f.Add([]byte("\x0b:event-type\x07\x00\x05chunk"), []byte("{}"), []byte{0, 0}, []byte{4})
	f.Add([]byte("\x0d:message-type\x07\x00\x09exception\x01a\x02\x01"), []byte{}, []byte("\x00\x00\x00\x10\x00\x00\x00\x00"), []byte{0})
	f.Fuzz(func(t *testing.T, headers, payload, rest, sizes []byte) {
		body := append(append(frame(headers, payload), frame(nil, payload)...), rest...)
		events := checkFramer(t, func() framer { return &awsFramer{frame: buffer{limit: limitInFuzz}} }, body, sizes)
		if preludeBytes+len(payload)+crcBytes <= limitInFuzz {
			require.Contains(t, events, "event  "+string(payload), "the frame after the first one")
		}
	})
}

func serverFramer(extensions string) framer {
	f := newWebSocketFramer(Limits{EventBytes: limitInFuzz}, false, extensions)
	return &f
}

func FuzzWebSocket(f *testing.F) {
	f.Add([]byte("\x01\x02{}\x89\x00\x80\x01x\x81\x7e\x00\x02{}"), []byte{0})
	f.Add(recorded.AppendFrame(nil, 0x82, make([]byte, 1<<16)), []byte{255})
	f.Add([]byte("\xc1\x01a\x81\x81"), []byte{2})
	f.Fuzz(func(t *testing.T, body, sizes []byte) {
		checkFramer(t, func() framer { return serverFramer("") }, body, sizes)
	})
}

// FuzzReaders passes any two JSON texts to the reader of any format: what it keeps is
// bounded and plausible.
func FuzzReaders(f *testing.F) {
	seen := map[string]bool{}
	for _, r := range recorded.Answers(f) {
		if r.ChunkUnit == "json_document" && len(r.Body) < 2000 {
			for i := range formats {
				f.Add(uint8(i), "", r.Body, r.Body)
			}
		}
		for line := range bytes.Lines(r.Body) {
			if _, text, ok := bytes.Cut(line, []byte("data: ")); ok && len(text) < 600 && !seen[r.File] {
				seen[r.File] = true
				for i := range formats {
					f.Add(uint8(i), "", bytes.TrimSpace(text), []byte(`{"type":"x"}`))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, format uint8, name string, first, second []byte) {
		chosen := formats[int(format)%len(formats)]
		read := chosen.newReader()
		r := &record{observation: Observation{Format: chosen.name}}
		for _, text := range [][]byte{first, second, first} {
			v, ok := parse(text)
			if !ok {
				continue
			}
			formatOf(event{name: []byte(name)}, v)
			r.begin()
			read(event{name: []byte(name), data: text}, v, r)
			if c, ok := r.take(); ok {
				require.Equal(t, c.Channels == Audio, c.Tokens == 0)
				require.NotZero(t, c.Channels)
			}
		}
		o := r.observation
		require.LessOrEqual(t, len(o.FinishReasons), maxChoices)
		for _, kept := range append(o.FinishReasons, o.Model, o.ResponseID, o.Error) {
			require.LessOrEqual(t, len(kept), maxName)
		}
		u := o.Usage()
		require.GreaterOrEqual(t, u.Input.Value, int64(0))
		require.GreaterOrEqual(t, u.Output.Value, int64(0))
	})
}

// FuzzDecoder passes any body under any head: the observations do not depend on the
// pieces in which it arrives.
func FuzzDecoder(f *testing.F) {
	for _, r := range recorded.Answers(f) {
		if len(r.Body) < 2000 {
			f.Add(r.RequestPath, r.ContentType, uint16(r.Status), r.Body, []byte{9, 2})
		}
	}
	f.Add("/v1/chat/completions", "", uint16(200), []byte("\xef\xbb\xbf \n: x\n\ndata: {\"choices\":[]}"), []byte{0})
	f.Fuzz(func(t *testing.T, path, contentType string, status uint16, body, sizes []byte) {
		x := AnswerHead{Path: path, Status: int(status), ContentType: contentType}
		limits := Limits{EventBytes: 400}
		whole := decode(x, limits, body)
		var cuts []int
		at := 0
		pieces(body, sizes, func(p []byte) {
			at += len(p)
			cuts = append(cuts, at)
		})
		require.Equal(t, whole, decode(x, limits, body, cuts...))
	})
}

func FuzzRequestOf(f *testing.F) {
	f.Add("/v1/models/m:streamRawPredict", "stream=true", []byte(`{"model":"m","parameters":{"stream":true},"stream":fal`))
	f.Fuzz(func(t *testing.T, path, query string, body []byte) {
		facts := RequestOf(path, query, body)
		require.LessOrEqual(t, len(facts.Model), maxName)
	})
}
