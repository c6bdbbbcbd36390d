// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/servertest"
)

func TestLiveBody_InflationIsLimited(t *testing.T) {
	for _, encoding := range []string{"gzip", "zstd", "zlib", "deflate"} {
		t.Run(encoding, func(t *testing.T) {
			b := start(t)
			body := startLine("s") + "\n" + strings.Repeat(" ", 8_000_000) + "\n" + endLine("s")
			compressed := servertest.Compress(t, encoding, []byte(body))
			ratio := len(body) / len(compressed)
			require.Greater(t, ratio, 500)
			got := b.post(t, typeNDJSON, bytes.NewReader(compressed), "Content-Encoding", encoding)
			require.Equal(t, 413, got.status)
			require.Equal(t, answer{Accepted: 1, Errors: []answerError{{
				Message: "the body decompresses to more than 100 times its compressed size, so the rest was not read; send it uncompressed",
			}}}, got.answer)
			require.EqualValues(t, 1, b.ingester.Store.Streams(), "events before the limit are applied")
			requireMetric(t, b, "events_rejected", map[string]string{"reason": "limit"}, 1)
			require.Zero(t, b.server.LiveShares.Held())
		})
	}
}

// Senders that repeat much text in each line compress best.
func TestLiveBody_HonestInflationPasses(t *testing.T) {
	const chunks = 10_000
	repeated := fmt.Sprintf(`"service":%q,"object":"chat.completion.chunk","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{},"finish_reason":null}]`, "chat-frontend-5d7c9b6b4f-x8z2p")
	random := rand.New(rand.NewPCG(1, 2))
	body := bytes.NewBufferString(startLine("s") + "\n")
	offset := time.Second
	for range chunks {
		offset += time.Duration(15_000+random.IntN(10_000)) * time.Microsecond
		body.WriteString(chunkLine("s", offset, repeated) + "\n")
	}
	body.WriteString(endLine("s") + "\n")
	for _, encoding := range []string{"gzip", "zstd", "deflate"} {
		t.Run(encoding, func(t *testing.T) {
			b := start(t)
			compressed := servertest.Compress(t, encoding, body.Bytes())
			ratio := body.Len() / len(compressed)
			t.Logf("%d bytes, compressed to 1/%d", body.Len(), ratio)
			require.Greater(t, ratio, 30)
			got := b.post(t, typeNDJSON, bytes.NewReader(compressed), "Content-Encoding", encoding)
			require.Equal(t, reply{200, got.header, answer{Accepted: chunks + 2}}, got)
		})
	}
}

func TestLines_RejectedOnesEndBody(t *testing.T) {
	const message = "1000 lines in a row were rejected, so the rest of the body was not read; fix the lines named above"
	garbage := startLine("s") + "\n" + strings.Repeat("x\n", 100_000) + endLine("s") + "\n"
	check := func(t *testing.T, b *bench, got reply) {
		t.Helper()
		require.Equal(t, 400, got.status)
		require.Equal(t, 1, got.answer.Accepted)
		require.Equal(t, 1000, got.answer.Rejected)
		require.Len(t, got.answer.Errors, 10)
		require.Equal(t, 2, got.answer.Errors[0].Line)
		require.Equal(t, message, got.answer.Errors[9].Message)
		require.EqualValues(t, 1, b.ingester.Store.Streams(), "lines before them are applied")
		requireMetric(t, b, "events_rejected", map[string]string{"reason": "malformed"}, 1000)
		requireMetric(t, b, "events_rejected", map[string]string{"reason": "limit"}, 1)
	}
	t.Run("with a Content-Length", func(t *testing.T) {
		b := start(t)
		check(t, b, b.post(t, typeNDJSON, strings.NewReader(garbage)))
	})
	t.Run("compressed", func(t *testing.T) {
		b := start(t)
		check(t, b, b.post(t, typeNDJSON, bytes.NewReader(servertest.Compress(t, "gzip", []byte(garbage))), "Content-Encoding", "gzip"))
	})
	t.Run("live", func(t *testing.T) {
		b := start(t)
		l := b.live(t)
		l.send(t, startLine("s"))
		go func() { // fails when the body ends
			for range 1000 {
				if _, err := l.Write([]byte(strings.Repeat("x\n", 10))); err != nil {
					return
				}
			}
		}()
		check(t, b, l.wait(t))
	})
	t.Run("an accepted line in between", func(t *testing.T) {
		b := start(t)
		some := strings.Repeat("x\n", 999)
		got := b.post(t, typeNDJSON, strings.NewReader(some+startLine("s")+"\n"+some+endLine("s")+"\n"+some))
		require.Equal(t, 200, got.status)
		require.Equal(t, 2, got.answer.Accepted)
		require.Equal(t, 3*999, got.answer.Rejected)
		require.Len(t, b.sink.all(), 1)
	})
	t.Run("events of unknown streams", func(t *testing.T) {
		// A restarted Collector does not know the streams that senders continue.
		b := start(t)
		var lines []string
		for i := range 3000 {
			lines = append(lines, chunkLine(strconv.Itoa(i%50), time.Duration(i)))
		}
		lines = append(lines, startLine("s"), endLine("s"))
		got := b.lines(t, lines...)
		require.Equal(t, 200, got.status)
		require.Equal(t, 2, got.answer.Accepted)
		require.Equal(t, 3000, got.answer.Rejected)
	})
}
