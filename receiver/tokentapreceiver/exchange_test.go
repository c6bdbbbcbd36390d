// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// broken is the writer of a client that is gone.
type broken struct{ http.ResponseWriter }

var errBroken = errors.New("broken pipe")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// The token arrived, though the client was gone: it belongs to the span.
func TestExchange_DecodesWhatTheClientDidNotGet(t *testing.T) {
	x := start(t, answerChat).beginChat()
	body := answerBody{ReadCloser: io.NopCloser(strings.NewReader(tokenEvent)), exchange: x}
	p := make([]byte, bufferSize)
	n, err := body.Read(p)
	require.NoError(t, err)
	w := answerWriter{broken{httptest.NewRecorder()}, x}
	_, err = w.Write(p[:n])
	require.ErrorIs(t, err, errBroken)
	x.Put(p)
	clear(p) // by the next user of the buffer
	require.Equal(t, 1, x.decoding.call.line.Len())
	require.True(t, x.clientClosed)
}

// What arrives with the end of the body is forwarded before it is decoded, like any other part.
func TestAnswerBody_DecodesItsEndOnceItWasForwarded(t *testing.T) {
	x := start(t, answerChat).beginChat()
	body := answerBody{ReadCloser: io.NopCloser(iotest.DataErrReader(strings.NewReader(tokenEvent))), exchange: x}
	p := make([]byte, bufferSize)
	n, err := body.Read(p)
	require.Equal(t, io.EOF, err)
	require.Equal(t, tokenEvent, string(p[:n]))
	require.Zero(t, x.decoding.call.line.Len())
	x.Put(p)
	require.Equal(t, 1, x.decoding.call.line.Len())
	require.True(t, x.complete)
}

// chunked is a body of which each read returns one chunk.
type chunked struct{ chunks []string }

func (c *chunked) Read(p []byte) (n int, err error) {
	if len(c.chunks) == 0 {
		return 0, io.EOF
	}
	time.Sleep(20 * time.Microsecond) // so that times differ
	n = copy(p, c.chunks[0])
	if c.chunks[0] = c.chunks[0][n:]; c.chunks[0] == "" {
		c.chunks = c.chunks[1:]
	}
	return n, nil
}

// Reads wait for others in the buffer that the answer is read into: neither spoils the other, at any size.
func TestBacklog_KeepsBytesAndTimesOfAnswers(t *testing.T) {
	token := func(text string) string { return strings.Replace(tokenEvent, "hi", text, 1) }
	for name, events := range map[string][]string{
		"short events":      slices.Repeat([]string{tokenEvent}, 30),
		"events of a third": slices.Repeat([]string{token(strings.Repeat("x", bufferSize/3))}, 10),
		"long events":       slices.Repeat([]string{token(strings.Repeat("x", 3*bufferSize)), tokenEvent, tokenEvent}, 5),
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, answerChat)
			x := p.beginChat()
			x.decoding.asked.facts.Stream = true
			body := answerBody{ReadCloser: io.NopCloser(&chunked{slices.Clone(events)}), exchange: x}
			buffer := make([]byte, bufferSize)
			var got strings.Builder
			var ended []int64 // when each event had arrived
			for {
				n, err := body.Read(buffer)
				got.Write(buffer[:n])
				if strings.HasSuffix(got.String(), "\n\n") && err == nil {
					ended = append(ended, x.pending.at)
				}
				if err != nil {
					require.Equal(t, io.EOF, err)
					break
				}
			}
			x.Put(buffer)
			require.Equal(t, strings.Join(events, ""), got.String())
			x.finish()
			times, tokens := arrivals(t, p.span())
			require.Equal(t, len(events), tokens)
			require.Len(t, times, len(events))
			for i, at := range times {
				late := time.Duration(ended[i] - at)
				require.True(t, 0 <= late && late < time.Microsecond, "event %d is %s early", i, late)
			}
		})
	}
}
