// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
)

// hostileSize is the decoded size of a bomb and of a long event. It is far over the limit
// of an event, and over what the tap may allocate.
const hostileSize = 64 << 20

// hostileMemory is what the peak memory of a Collector may grow by for one of them. A zstd
// window may have 8 MiB, and the garbage collector doubles what is live.
const hostileMemory = 32 << 20

// repeated writes a text until it has written a number of bytes.
func repeated(w io.Writer, text string, size int) {
	block := []byte(strings.Repeat(text, max(1, 32<<10/len(text))))
	for written := 0; written < size; written += len(block) {
		_, _ = w.Write(block)
	}
}

// hostileAnswers are answers that a decoder must not hold in memory. encoding is the
// header Content-Encoding, part what the tap reports as unparsed. Each has one chunk that
// can be read, apart from the last.
var hostileAnswers = []struct {
	name, encoding, part string
	write                func(w io.Writer)
}{
	{"gzip bomb", "gzip", "too_long", bomb(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })},
	{"deflate bomb", "deflate", "too_long", bomb(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })},
	{"br bomb", "br", "too_long", bomb(func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) })},
	{"zstd bomb", "zstd", "too_long", bomb(func(w io.Writer) io.WriteCloser {
		encoder, _ := zstd.NewWriter(w) // without options, there is no error
		return encoder
	})},
	{"long event", "", "too_long", func(w io.Writer) {
		_, _ = io.WriteString(w, llmservice.ChatChunk+"data: ")
		repeated(w, "a", hostileSize)
		_, _ = io.WriteString(w, "\n\n"+llmservice.ChatEnd)
	}},
	{"line ends", "", "", func(w io.Writer) {
		repeated(w, "\n", hostileSize)
		_, _ = io.WriteString(w, llmservice.ChatChunk+llmservice.ChatEnd)
	}},
	{"nested JSON", "", "too_long", func(w io.Writer) {
		_, _ = io.WriteString(w, llmservice.ChatChunk+"data: ")
		repeated(w, `{"a":[`, hostileSize)
		_, _ = io.WriteString(w, "\n\n"+llmservice.ChatEnd)
	}},
	{"garbage called gzip", "gzip", "content_encoding", func(w io.Writer) { repeated(w, llmservice.ChatChunk, 1<<20) }},
}

// bomb compresses one long event between chunks.
func bomb(compress func(io.Writer) io.WriteCloser) func(io.Writer) {
	return func(w io.Writer) {
		compressed := compress(w)
		_, _ = io.WriteString(compressed, llmservice.ChatChunk+"data: ")
		repeated(compressed, "\x00", hostileSize)
		_, _ = io.WriteString(compressed, "\n\n"+llmservice.ChatEnd)
		_ = compressed.Close()
	}
}

// hashed hashes what it passes on.
type hashed struct {
	io.Writer
	hash hash.Hash
}

func (h hashed) Write(p []byte) (int, error) {
	_, _ = h.hash.Write(p)
	return h.Writer.Write(p)
}

// What a decoder cannot read passes byte by byte, costs bounded memory, and is counted. The
// tokens around it count.
func TestTapHostile_PassesUnchangedInBoundedMemory(t *testing.T) {
	t.Parallel()
	for _, hostile := range hostileAnswers {
		t.Run(hostile.name, func(t *testing.T) {
			sent := sha256.New()
			var quiet bytes.Buffer
			gzipped := gzip.NewWriter(&quiet)
			_, _ = io.WriteString(gzipped, llmservice.ChatChunk+llmservice.ChatEnd)
			_ = gzipped.Close()
			upstream := llmservice.Start(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				if r.FormValue("hostile") == "" {
					w.Header().Set("Content-Encoding", "gzip")
					_, _ = w.Write(quiet.Bytes())
					return
				}
				if hostile.encoding != "" {
					w.Header().Set("Content-Encoding", hostile.encoding)
				}
				hostile.write(hashed{w, sent})
			})
			c := collector.StartTap(t, upstream.URL)
			client := http.Client{Transport: &http.Transport{DisableCompression: true}}
			defer client.CloseIdleConnections()
			ask := func(query string) [sha256.Size]byte {
				answer, err := client.Post(c.URL(llmservice.ChatPath+query), "application/json", strings.NewReader(llmservice.ChatAsked))
				require.NoError(t, err)
				defer answer.Body.Close()
				received := sha256.New()
				_, err = io.Copy(received, answer.Body)
				require.NoError(t, err)
				return [sha256.Size]byte(received.Sum(nil))
			}
			ask("") // opens connections and buffers
			before := c.PeakMemory(t)
			received := ask("?hostile=1")
			require.Equal(t, [sha256.Size]byte(sent.Sum(nil)), received, "bytes received")
			grown := c.PeakMemory(t) - before
			t.Logf("the peak memory grew by %.1f MiB, from %.1f MiB", exposition.Mebi(grown), exposition.Mebi(before))
			require.Less(t, grown, int64(hostileMemory))
			require.EventuallyWithT(t, func(collect *assert.CollectT) {
				m := exposition.ScrapeSelf(t, c.Self)
				assert.EqualValues(collect, 2, m.Of("receiver_token_tap_exchanges_finished"))
				if hostile.part != "" {
					assert.EqualValues(collect, 1, m.Of("receiver_token_tap_unparsed", "part="+hostile.part))
				}
			}, collector.Patience, 100*time.Millisecond)
			ask("") // the tap goes on
			c.Stop(t)
			spans := otlpfile.ReadSpans(t, c.Sent)
			require.Len(t, spans, 3)
			chunks := 1
			if hostile.part == "content_encoding" {
				chunks = 0
			}
			times, _ := otlpfile.ChunksOf(t, spans[1])
			require.Len(t, times, chunks)
		})
	}
}

// A pipeline that never answers costs spans, never traffic.
func TestTapHostile_BlockedPipelineDoesNotDelayTraffic(t *testing.T) {
	var blocked sync.Mutex
	blocked.Lock()
	backend := llmservice.Start(t, func(http.ResponseWriter, *http.Request) {
		blocked.Lock() // until the end of the test
		defer blocked.Unlock()
	})
	defer blocked.Unlock()
	upstream := llmservice.Start(t, func(w http.ResponseWriter, _ *http.Request) {
		llmservice.WriteChunks(w, 3)
		_, _ = io.WriteString(w, llmservice.ChatEnd)
	})
	const queued, exchanges = 5, 50
	collector.Setenv(t, "BACKEND", backend.URL)
	c := collector.StartTap(t, upstream.URL, fmt.Sprintf("receivers: {token_tap: {max_queued_spans: %d}}", queued), blockingExporter)
	client := http.Client{Timeout: collector.Patience}
	for range exchanges {
		answer, err := client.Post(c.URL(llmservice.ChatPath), "application/json", strings.NewReader(llmservice.ChatAsked))
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, strings.Repeat(llmservice.ChatChunk, 3)+llmservice.ChatEnd, string(body))
	}
	m := exposition.ScrapeSelf(t, c.Self)
	require.EqualValues(t, exchanges, m.Of("receiver_token_tap_exchanges_finished"))
	// One batch is with the pipeline, and the queue is full.
	dropped := m.Of("receiver_token_tap_spans_dropped", "cause=queue_full")
	require.GreaterOrEqual(t, dropped, int64(exchanges-2*queued-1))
	require.Less(t, dropped, int64(exchanges))
	require.EqualValues(t, queued, m.Of("receiver_token_tap_queue_size"))
}

const blockingExporter = `
exporters:
  otlp_http: {endpoint: "${env:BACKEND}", timeout: 10m, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
service: {pipelines: {traces: {exporters: [token_sli, otlp_http]}}}
`
