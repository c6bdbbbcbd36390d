// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

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
	clear(p) // by the next user of the buffer
	require.Equal(t, 1, x.decoding.call.line.Len())
	require.True(t, x.clientClosed)
}

// What arrives with the end of the body is forwarded before it is decoded, like any other part.
func TestAnswerBody_ReturnsTheEndAloneAndDecodesBeforeIt(t *testing.T) {
	x := start(t, answerChat).beginChat()
	body := answerBody{ReadCloser: io.NopCloser(iotest.DataErrReader(strings.NewReader(tokenEvent))), exchange: x}
	p := make([]byte, bufferSize)
	n, err := body.Read(p)
	require.NoError(t, err)
	require.Equal(t, tokenEvent, string(p[:n]))
	require.Zero(t, x.decoding.call.line.Len())
	n, err = body.Read(p)
	require.Equal(t, io.EOF, err)
	require.Zero(t, n)
	require.Equal(t, 1, x.decoding.call.line.Len())
	require.True(t, x.complete)
}
