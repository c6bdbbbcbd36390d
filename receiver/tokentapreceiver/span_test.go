// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestSpan_HasTokensOfCacheAndModality(t *testing.T) {
	const usage = `{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3,"text_tokens":2,"image_tokens":7,"audio_tokens":0},` +
		`"completion_tokens_details":{"audio_tokens":4}}`
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		stream(w)(tokenEvent + finishEvent + `data: {"object":"chat.completion.chunk","choices":[],"usage":` + usage + "}\n\n" + doneEvent)
	})
	p.post(chatPath, chatRequest)
	counts := attributesOf(p.span())
	maps.DeleteFunc(counts, func(name string, _ any) bool { return !strings.HasPrefix(name, "gen_ai.usage.") })
	require.Equal(t, map[string]any{
		"gen_ai.usage.input_tokens": int64(9), "gen_ai.usage.output_tokens": int64(5),
		"gen_ai.usage.cache_read.input_tokens": int64(4), "gen_ai.usage.cache_write.input_tokens": int64(3),
		"gen_ai.usage.text.input_tokens": int64(2), "gen_ai.usage.image.input_tokens": int64(7), "gen_ai.usage.audio.output_tokens": int64(4),
	}, counts)
}

func TestSpan_HasWhatRequestAndAnswerSay(t *testing.T) {
	var upstreamParent string
	p := start(t, func(w http.ResponseWriter, req *http.Request) {
		upstreamParent = req.Header.Get("Traceparent")
		answerChat(w, req)
	}, func(cfg *Config) {
		cfg.Routes = []RouteConfig{{Prefix: "/team", Upstream: cfg.Upstream}}
		cfg.AttributesFromHeaders = map[string]string{"x-tenant-id": "tenant.id", "x-missing": "missing"}
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/team"+chatPath, strings.NewReader(chatRequest))
	require.NoError(t, err)
	request.Header.Set("Traceparent", traceparent)
	request.Header.Set("Tracestate", "a=b")
	request.Header.Set("X-Tenant-Id", "t\xff9")
	response, err := client(t).Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, chatAnswer(3), string(body))

	span := p.span()
	host, port, err := net.SplitHostPort(strings.TrimPrefix(p.receiver.cfg.Upstream.Endpoint, "http://"))
	require.NoError(t, err)
	all := attributesOf(span)
	require.Equal(t, port, fmt.Sprint(all["server.port"]))
	delete(all, "server.port")
	require.Equal(t, map[string]any{
		"tenant.id": "t?9", "http.request.method": "POST", "http.response.status_code": int64(200), "server.address": host,
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-x", "gen_ai.request.stream": true,
		"gen_ai.response.model": "m-1", "gen_ai.response.id": "r1", "gen_ai.response.finish_reasons": []any{"stop"},
		"gen_ai.usage.input_tokens": int64(3), "gen_ai.usage.output_tokens": int64(5),
		"tokenpulse.source": "token_tap", "tokenpulse.vantage": "gateway", "tokenpulse.outcome": "success", "tokenpulse.tap.uncounted": true,
	}, all)
	require.Equal(t, "chat gpt-x", span.Name())
	require.Equal(t, ptrace.SpanKindClient, span.Kind())
	require.Equal(t, ptrace.StatusCodeUnset, span.Status().Code())
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", span.TraceID().String())
	require.Equal(t, "b7ad6b7169203331", span.ParentSpanID().String())
	require.Equal(t, "a=b", span.TraceState().AsRaw())
	require.Equal(t, fmt.Sprintf("00-0af7651916cd43dd8448eb211c80319c-%s-01", span.SpanID()), upstreamParent)
}

func TestSpan_StartsATraceAndLeavesContextUnlessPropagating(t *testing.T) {
	for name, propagate := range map[string]bool{"propagating": true, "not propagating": false} {
		t.Run(name, func(t *testing.T) {
			var parent []string
			p := start(t, func(w http.ResponseWriter, req *http.Request) {
				parent = req.Header.Values("Traceparent")
				answerChat(w, req)
			}, func(cfg *Config) { cfg.Propagate = propagate })
			p.post(chatPath, chatRequest)
			span := p.span()
			require.False(t, span.TraceID().IsEmpty())
			require.True(t, span.ParentSpanID().IsEmpty())
			if propagate {
				require.Equal(t, []string{fmt.Sprintf("00-%s-%s-01", span.TraceID(), span.SpanID())}, parent)
			} else {
				require.Empty(t, parent)
			}
		})
	}
}

// The time of a chunk lies between the moments before the upstream sent it and before it sent the
// next one, whether the answer is compressed or not.
func TestSpan_TimesEachChunk(t *testing.T) {
	for _, encoding := range []string{"", "gzip", "deflate", "Deflate", "br", "zstd", "gzip, br", "identity, br, gzip, zstd, x-gzip, deflate"} {
		t.Run("encoding "+encoding, func(t *testing.T) {
			received, stamps := make(chan struct{}), []int64(nil)
			p := start(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", encoding)
				send := stream(w)
				var encoded bytes.Buffer
				encoder := newEncoder(encoding, &encoded)
				for _, piece := range []string{roleEvent, tokenEvent, tokenEvent, ": ping\n\n", tokenEvent, finishEvent + usageEvent + doneEvent} {
					_, _ = io.WriteString(encoder, piece)
					_ = encoder.Flush()
					stamps = append(stamps, time.Now().UnixNano())
					send(encoded.String())
					encoded.Reset()
					<-received
					time.Sleep(2 * time.Millisecond)
				}
				_ = encoder.Close()
				send(encoded.String())
			})
			response := p.open(chatPath, chatRequest)
			buffer := make([]byte, 64<<10)
			for range 6 {
				_, err := response.Body.Read(buffer)
				require.NoError(t, err)
				received <- struct{}{}
			}
			_, err := io.Copy(io.Discard, response.Body)
			require.NoError(t, err)

			span := p.span()
			require.Equal(t, "success", attributesOf(span)["tokenpulse.outcome"])
			require.NotContains(t, attributesOf(span), "tokenpulse.tap.unparsed")
			times, tokens := arrivals(t, span)
			require.Equal(t, 3, tokens)
			require.Len(t, times, 3)
			for i, piece := range []int{1, 2, 4} {
				require.LessOrEqual(t, stamps[piece]-1000, times[i], "chunk %d; the timeline is truncated to microseconds", i)
				require.Less(t, times[i], stamps[piece+1], "chunk %d", i)
			}
		})
	}
}

func TestSpan_Outcomes(t *testing.T) {
	abort := func() { panic(http.ErrAbortHandler) }
	for _, c := range []struct {
		name           string
		answer         http.HandlerFunc
		outcome, error string
		chunks         int
	}{
		{"success", answerChat, "success", "", 3},
		{"an error status with a type", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"message":"slow down","type":"rate_limit"}}`)
		}, "error", "rate_limit", 0},
		{"an error status without a body", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "error", "503", 0},
		{"an error inside of a stream", func(w http.ResponseWriter, _ *http.Request) {
			stream(w)(roleEvent + tokenEvent + `data: {"error":{"message":"broke","type":"server_error"}}` + "\n\n" + doneEvent)
		}, "error", "server_error", 1},
		{"an empty answer", func(http.ResponseWriter, *http.Request) {}, "error", "empty_answer", 0},
		{"a stream without its end", func(w http.ResponseWriter, _ *http.Request) { stream(w)(roleEvent + tokenEvent) }, "incomplete", "upstream_cut", 1},
		{"a connection that breaks", func(w http.ResponseWriter, _ *http.Request) {
			stream(w)(roleEvent + tokenEvent + tokenEvent)
			abort()
		}, "incomplete", "upstream_cut", 2},
		{"a connection that breaks after the end of the stream", func(w http.ResponseWriter, _ *http.Request) {
			stream(w)(chatAnswer(2))
			abort()
		}, "success", "", 2},
		{"a connection that breaks before the answer", func(http.ResponseWriter, *http.Request) { abort() }, "error", "upstream_unreachable", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, c.answer)
			response, err := client(t).Post(p.url+chatPath, "application/json", strings.NewReader(chatRequest))
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, response.Body)
			require.Equal(t, strings.HasPrefix(c.name, "a connection that breaks") && c.error != "upstream_unreachable", err != nil, "the client sees the break")
			require.NoError(t, response.Body.Close())
			span := p.span()
			all := attributesOf(span)
			require.Equal(t, c.outcome, all["tokenpulse.outcome"])
			kind, _ := all["error.type"].(string)
			require.Equal(t, c.error, kind)
			require.Equal(t, c.error != "", span.Status().Code() == ptrace.StatusCodeError)
			times, _ := arrivals(t, span)
			require.Len(t, times, c.chunks)
			require.EqualValues(t, 1, p.counter("exchanges_finished"))
		})
	}
}

func TestSpan_ClientThatLeavesCancels(t *testing.T) {
	for name, c := range map[string]struct {
		pieces string
		http2  bool
	}{
		"before the answer":              {"", false},
		"after a comment":                {": wait\n\n", false},
		"after a token":                  {roleEvent + tokenEvent, false},
		"before the answer, over HTTP/2": {"", true},
		"after a token, over HTTP/2":     {roleEvent + tokenEvent, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{})
			p := start(t, func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body) // or the server would not notice that its client leaves
				if c.pieces != "" {
					stream(w)(c.pieces)
				}
				close(asked)
				<-req.Context().Done() // the upstream learns of it
			})
			ctx, leave := context.WithCancel(t.Context())
			go func() { <-asked; leave() }()
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+chatPath, strings.NewReader(chatRequest))
			require.NoError(t, err)
			client := client(t)
			protocols := new(http.Protocols)
			protocols.SetHTTP1(!c.http2)
			protocols.SetUnencryptedHTTP2(c.http2)
			client.Transport.(*http.Transport).Protocols = protocols
			if response, err := client.Do(request); err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				require.ErrorIs(t, err, context.Canceled)
				require.NoError(t, response.Body.Close())
			}
			all := attributesOf(p.span())
			require.Equal(t, "cancelled", all["tokenpulse.outcome"])
			require.NotContains(t, all, "error.type")
			require.NotContains(t, all, "tokenpulse.tap.unparsed")
		})
	}
}

// A client may leave before it has sent its whole request. The body is not malformed, and the
// upstream did not cut the answer.
func TestSpan_ClientThatLeavesBeforeItsRequestEndsCancels(t *testing.T) {
	for name, c := range map[string]struct {
		head   string
		pieces string // of the answer
		resets bool
	}{
		"a body with a length":          {"Content-Length: 1000000\r\n\r\n", "", false},
		"a body of chunks":              {"Transfer-Encoding: chunked\r\n\r\nfffff\r\n", "", false},
		"a reset":                       {"Content-Length: 1000000\r\n\r\n", "", true},
		"an answer that has begun":      {"Content-Length: 1000000\r\n\r\n", roleEvent + tokenEvent, false},
		"a reset after an answer began": {"Content-Length: 1000000\r\n\r\n", roleEvent + tokenEvent, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{})
			p := start(t, func(w http.ResponseWriter, req *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex()
				_, _ = req.Body.Read(make([]byte, 1))
				if c.pieces != "" {
					stream(w)(c.pieces)
				}
				close(asked)
				_, _ = io.Copy(io.Discard, req.Body)
			})
			connection := p.dial()
			_, err := io.WriteString(connection, "POST "+chatPath+" HTTP/1.1\r\nHost: h\r\n"+c.head+strings.Repeat(" ", 100_000))
			require.NoError(t, err)
			<-asked
			if c.pieces != "" {
				var answer strings.Builder
				for buffer := make([]byte, 1<<10); !strings.Contains(answer.String(), tokenEvent); {
					n, err := connection.Read(buffer)
					require.NoError(t, err)
					answer.Write(buffer[:n])
				}
			}
			if c.resets {
				require.NoError(t, connection.(*net.TCPConn).SetLinger(0))
			}
			require.NoError(t, connection.Close())
			all := attributesOf(p.span())
			require.Equal(t, "cancelled", all["tokenpulse.outcome"])
			require.NotContains(t, all, "error.type")
			require.Empty(t, p.logs.FilterMessage(diagnostics.UpstreamUnreachable.Message()).All())
		})
	}
}

func TestSpan_WholeAnswerHasUsageButNoTokenTimes(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"r","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":7,"completion_tokens":9}}`)
	})
	for i, asked := range []bool{false, true} { // something in between may have stopped streaming
		p.post(chatPath, fmt.Sprintf(`{"model":"gpt-x","stream":%t}`, asked))
		span := p.spansAfter(i + 1)[i]
		all := attributesOf(span)
		require.EqualValues(t, 9, all["gen_ai.usage.output_tokens"])
		require.Equal(t, asked, all["gen_ai.request.stream"])
		require.Equal(t, "whole", all["tokenpulse.tap.untimed"])
		require.Equal(t, "success", all["tokenpulse.outcome"])
		times, _ := arrivals(t, span)
		require.Empty(t, times)
	}
}

// Whether or not usage says how many tokens there are in all, a chunk that holds several counts as one.
func TestSpan_SaysThatTokensAreUncounted(t *testing.T) {
	counted := strings.Replace(tokenEvent, `"delta"`, `"logprobs":{"content":[{"token":"h"},{"token":"i"}]},"delta"`, 1)
	for name, test := range map[string]struct {
		answer    string
		uncounted any
	}{
		"usage":                      {roleEvent + tokenEvent + tokenEvent + finishEvent + usageEvent, true},
		"tokens of every chunk":      {roleEvent + counted + counted + finishEvent, nil},
		"neither":                    {roleEvent + tokenEvent + tokenEvent + finishEvent, true},
		"tokens of some chunks only": {roleEvent + counted + tokenEvent + finishEvent, true},
		"no token":                   {roleEvent + finishEvent, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, func(w http.ResponseWriter, _ *http.Request) { stream(w)(test.answer + doneEvent) })
			p.post(chatPath, chatRequest)
			require.Equal(t, test.uncounted, attributesOf(p.span())["tokenpulse.tap.uncounted"])
		})
	}
}

// Groq reports 10 ms of queue and 20 ms of prompt processing. The network is what is left of the
// time to first token.
func TestSpan_TimingsOfTheService(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(40 * time.Millisecond)
		stream(w)(roleEvent + tokenEvent + finishEvent +
			`data: {"id":"r1","object":"chat.completion.chunk","choices":[],"x_groq":{"usage":{"queue_time":0.01,"prompt_time":0.02,"completion_time":0.03,"prompt_tokens":1,"completion_tokens":1}}}` + "\n\n" + doneEvent)
	})
	p.post(chatPath, chatRequest)
	span := p.span()
	all := attributesOf(span)
	require.InDelta(t, 0.01, all["tokenpulse.queue.duration"], 1e-9)
	require.InDelta(t, 0.02, all["tokenpulse.prefill.duration"], 1e-9)
	require.InDelta(t, 0.03, all["tokenpulse.decode.duration"], 1e-9)
	times, _ := arrivals(t, span)
	firstToken := float64(times[0]-int64(span.StartTimestamp())) / 1e9
	require.InDelta(t, firstToken-0.03, all["tokenpulse.network.duration"], 2e-6)
}

// vLLM's time to first token begins when the request is scheduled, so it is the prefill.
func TestSpan_MetricsOfVLLM(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		stream(w)(roleEvent + tokenEvent + finishEvent + `data: {"object":"chat.completion.chunk","choices":[],"usage":{"completion_tokens":4},` +
			`"metrics":{"queue_time_ms":10,"time_to_first_token_ms":20.5,"generation_time_ms":30,"speculative_decoding":{"num_accepted_draft_tokens":3,"num_draft_tokens":7}}}` + "\n\n" + doneEvent)
	})
	p.post(chatPath, chatRequest)
	all := attributesOf(p.span())
	require.InDelta(t, 0.01, all["tokenpulse.queue.duration"], 1e-9)
	require.InDelta(t, 0.0205, all["tokenpulse.prefill.duration"], 1e-9)
	require.InDelta(t, 0.03, all["tokenpulse.decode.duration"], 1e-9)
	require.EqualValues(t, 3, all["tokenpulse.speculative.accepted_tokens"])
	require.EqualValues(t, 7, all["tokenpulse.speculative.draft_tokens"])
}

func TestSpan_OtherTrafficHasNone(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"embedding":[1,2]}],"usage":{"prompt_tokens":3}}`)
	})
	_, body := p.post("/v1/embeddings", `{"model":"e"}`)
	require.Contains(t, body, "embedding")
	response, err := client(t).Get(p.url + "/v1/models")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Eventually(t, func() bool { return p.counter("exchanges_unrecognised") == 2 }, time.Minute, time.Millisecond)
	require.Zero(t, p.spans.SpanCount())
}

func TestSpan_SaysWhatCouldNotBeRead(t *testing.T) {
	bomb := func(w io.Writer) {
		zip := gzip.NewWriter(w)
		_, _ = io.WriteString(zip, roleEvent+tokenEvent+"data: ")
		zeros := make([]byte, 1<<20)
		for range 64 {
			_, _ = zip.Write(zeros)
		}
		_ = zip.Close()
	}
	bombOfNothing := func(w io.Writer) { // 8 MiB of empty gzip files
		fmt.Fprint(w, encoded("gzip", encoded("gzip", roleEvent+tokenEvent)+strings.Repeat(encoded("gzip", ""), 8<<20/len(encoded("gzip", "")))))
	}
	for _, c := range []struct {
		name, encoding, contentType, part string
		answer                            func(io.Writer)
	}{
		{"garbage", "", "text/event-stream", "format", func(w io.Writer) { fmt.Fprint(w, strings.Repeat("\x00\xff garbage\n", 100)) }},
		{"JSON that is damaged", "", "text/event-stream", "invalid", func(w io.Writer) { fmt.Fprint(w, roleEvent, "data: {\"a\n\n", tokenEvent) }},
		{"an event above the limit", "", "text/event-stream", "too_long", func(w io.Writer) { fmt.Fprint(w, roleEvent, "data: ", numbered(2<<20), "\n\n", tokenEvent) }},
		{"an unknown content encoding", "rot13", "text/event-stream", "content_encoding", func(w io.Writer) { fmt.Fprint(w, chatAnswer(1)) }},
		{"a damaged content encoding", "gzip", "text/event-stream", "content_encoding", func(w io.Writer) { fmt.Fprint(w, chatAnswer(1)) }},
		{"too many content encodings", "br,br,br,br,br,br", "text/event-stream", "content_encoding", func(w io.Writer) { fmt.Fprint(w, encoded("br,br,br,br,br,br", chatAnswer(1))) }},
		{"a bomb", "gzip", "text/event-stream", "content_encoding", bomb},
		{"a bomb of nothing", "gzip, gzip", "text/event-stream", "content_encoding", bombOfNothing},
		{"a frame with a bad checksum", "", "application/vnd.amazon.eventstream", "corrupt", func(w io.Writer) { fmt.Fprint(w, "\x00\x00\x00\x20\x00\x00\x00\x04\x00\x00\x00\x00", numbered(100)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sent bytes.Buffer
			c.answer(&sent)
			p := start(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				w.Header().Set("Content-Encoding", c.encoding)
				_, _ = w.Write(sent.Bytes())
			})
			_, body := p.post(chatPath, chatRequest)
			require.Equal(t, hash(sent.String()), hash(body))
			require.Contains(t, attributesOf(p.span())["tokenpulse.tap.unparsed"], c.part)
			require.Positive(t, p.counter("unparsed"))
		})
	}
}

// Neither spans nor logs have anything of a credential or of a text, whatever fails.
func TestSpan_HoldsNoSecretAndNoText(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"success": func(w http.ResponseWriter, _ *http.Request) {
			stream(w)(strings.ReplaceAll(chatAnswer(2), "hi", "TOPSECRET"))
		},
		"an error with a text": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"key TOPSECRET is wrong"}}`)
		},
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"an answer that is not HTTP": func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(connection, "TOPSECRET\r\n\r\n")
				_ = connection.Close()
			}
		},
		"a header that is not HTTP": func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\nTOPSECRET\r\n\r\n")
				_ = connection.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, answer)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+chatPath+"?key=TOPSECRET",
				strings.NewReader(`{"model":"gpt-x","stream":true,"messages":[{"role":"user","content":"TOPSECRET"}]}`))
			require.NoError(t, err)
			for _, header := range []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
				request.Header.Set(header, "TOPSECRET")
			}
			response, err := client(t).Do(request)
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			p.span()
			encoded, err := new(ptrace.JSONMarshaler).MarshalTraces(p.spans.AllTraces()[0])
			require.NoError(t, err)
			require.NotContains(t, string(encoded), "TOPSECRET")
			if name == "no answer" {
				require.NotContains(t, string(body), "TOPSECRET")
			}
			for _, entry := range p.logs.All() {
				require.NotContains(t, fmt.Sprint(entry.Message, entry.ContextMap()), "TOPSECRET")
			}
		})
	}
}

func TestSpan_UpstreamThatIsDown(t *testing.T) {
	p := startAt(t, new(consumertest.TracesSink), func(cfg *Config) { cfg.Upstream.Endpoint = "http://127.0.0.1:1" })
	response, body := p.post(chatPath, chatRequest)
	require.Equal(t, http.StatusBadGateway, response.StatusCode)
	require.JSONEq(t, `{"error":{"type":"upstream_unreachable","message":"token_tap: the upstream 127.0.0.1:1 did not answer"}}`, body)
	all := attributesOf(p.span())
	require.Equal(t, "upstream_unreachable", all["error.type"])
	require.Equal(t, "gpt-x", all["gen_ai.request.model"], "an alert on errors names the model")
	require.Equal(t, true, all["gen_ai.request.stream"])
	require.Len(t, p.logs.FilterMessage(diagnostics.UpstreamUnreachable.Message()).All(), 1)

	_, _ = p.post(chatPath, `{"model":"gpt-x","messages":"`+numbered(maxDiscarded)+`"}`)
	require.NotContains(t, attributesOf(p.spansAfter(2)[1]), "gen_ai.request.model", "a long body is not waited for")
}

var errRefused = errors.New("refused")
