// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// encoder applies content encodings.
type encoder interface {
	io.WriteCloser
	Flush() error
}

var encoders = map[string]func(io.Writer) encoder{
	"identity": func(w io.Writer) encoder { return identity{w} },
	"":         func(w io.Writer) encoder { return identity{w} },
	"gzip":     func(w io.Writer) encoder { return gzip.NewWriter(w) },
	"x-gzip":   func(w io.Writer) encoder { return gzip.NewWriter(w) },
	"deflate":  func(w io.Writer) encoder { return zlib.NewWriter(w) },
	"Deflate":  func(w io.Writer) encoder { raw, _ := flate.NewWriter(w, 5); return raw }, // as some servers send it
	"br":       func(w io.Writer) encoder { return brotli.NewWriter(w) },
	"zstd":     func(w io.Writer) encoder { encoder, _ := zstd.NewWriter(w); return encoder },
}

// newEncoder returns an encoder that applies encodings in their order.
func newEncoder(encodings string, w io.Writer) encoder {
	var all encoderChain
	for _, name := range slices.Backward(strings.Split(encodings, ",")) {
		next := encoders[strings.TrimSpace(name)](w)
		all = append(encoderChain{next}, all...)
		w = next
	}
	return all
}

// encoderChain holds encoders, each of which writes to the next one.
type encoderChain []encoder

func (c encoderChain) Write(p []byte) (int, error) { return c[0].Write(p) }

func (c encoderChain) Flush() (err error) {
	for _, next := range c {
		err = errors.Join(err, next.Flush())
	}
	return err
}

func (c encoderChain) Close() (err error) {
	for _, next := range c {
		err = errors.Join(err, next.Close())
	}
	return err
}

type identity struct{ io.Writer }

func (identity) Flush() error { return nil }
func (identity) Close() error { return nil }

// encoded returns text with encodings.
func encoded(encodings, text string) string {
	var all bytes.Buffer
	encoder := newEncoder(encodings, &all)
	_, _ = io.WriteString(encoder, text)
	_ = encoder.Close()
	return all.String()
}

// The model and the stream flag of a compressed request are read from a copy. Of one that
// cannot be read, the answer names the model.
func TestRequest_IsDecodedForInspection(t *testing.T) {
	padding := strings.Repeat(" ", 2<<20)
	for name, c := range map[string]struct {
		encodings, body, model string
		truncated              int64
	}{
		"gzip":                      {"gzip", encoded("gzip", chatRequest), "gpt-x", 0},
		"zstd":                      {"zstd", encoded("zstd", chatRequest), "gpt-x", 0},
		"five encodings":            {"br, gzip, zstd, x-gzip, deflate", encoded("br, gzip, zstd, x-gzip, deflate", chatRequest), "gpt-x", 0},
		"an end that is missing":    {"gzip", strings.TrimSuffix(encoded("gzip", chatRequest), encoded("gzip", chatRequest)[60:]), "gpt-x", 0},
		"not encoded":               {"gzip", chatRequest, "m-1", 1},
		"an unknown encoding":       {"rot13", chatRequest, "m-1", 1},
		"a model within the limit":  {"gzip", encoded("gzip", `{"model":"gpt-x",`+padding), "gpt-x", 1},
		"a model beyond the limit":  {"gzip", encoded("gzip", `{`+padding+`"model":"gpt-x"}`), "m-1", 1},
		"a bomb of empty zip files": {"gzip, gzip", encoded("gzip", encoded("gzip", chatRequest)+strings.Repeat(encoded("gzip", ""), 1<<17)), "gpt-x", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var received string
			p := start(t, func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				received = string(body)
				stream(w)(chatAnswer(3))
			})
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+chatPath, strings.NewReader(c.body))
			require.NoError(t, err)
			request.Header.Set("Content-Encoding", c.encodings)
			response, err := client(t).Do(request)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, hash(c.body), hash(received), "the request passes as it is")
			require.Equal(t, c.model, attributesOf(p.span())["gen_ai.request.model"])
			require.Equal(t, c.truncated, p.counter("requests_truncated"))
		})
	}
}

// The decoded copy of a request is limited, as its copy is.
func TestDecodeRequest_LimitsWhatItReturns(t *testing.T) {
	bomb := encoded("zstd", strings.Repeat(" ", 8<<20))
	body, ok := decodeRequest(http.Header{"Content-Encoding": {"zstd"}}, []byte(bomb), nil)
	require.False(t, ok)
	require.LessOrEqual(t, cap(body), 4*maxRequestCopy)
}
