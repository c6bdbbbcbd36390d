// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const (
	speechPath    = "/v1/audio/speech"
	speechRequest = `{"model":"tts","input":"a","voice":"alloy","response_format":"pcm"}`
)

// channels returns those of the chunks of a span's timeline, and its tokens.
func channels(t *testing.T, span ptrace.Span) (all []string, tokens int) {
	t.Helper()
	encoded, ok := span.Attributes().Get("tokenpulse.timeline")
	require.True(t, ok)
	walk, err := timeline.Decode(encoded.Bytes().AsRaw())
	require.NoError(t, err)
	for walk.Next() {
		all = append(all, walk.Channel().String())
		tokens += int(walk.Tokens())
	}
	require.NoError(t, walk.Err())
	return all, tokens
}

// speak answers with pieces of audio, each after the client has received those before.
func speak(contentType string, received <-chan struct{}, pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", contentType)
		for _, piece := range pieces {
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
			<-received
			time.Sleep(5 * time.Millisecond) // reads at once are one chunk
		}
	}
}

// listen reads an answer piece by piece.
func listen(t *testing.T, answer io.Reader, received chan<- struct{}, pieces ...string) {
	t.Helper()
	for _, piece := range pieces {
		got := make([]byte, len(piece))
		_, err := io.ReadFull(answer, got)
		require.NoError(t, err)
		require.Equal(t, piece, string(got))
		received <- struct{}{}
	}
}

func TestAudio_EachPieceOfSpeechIsAChunk(t *testing.T) {
	pieces := []string{strings.Repeat("\x00\x01", 1_200), strings.Repeat("{", 2_400), "\n "}
	received := make(chan struct{})
	p := start(t, speak("audio/pcm", received, pieces...))
	response := p.open(speechPath, speechRequest)
	listen(t, response.Body, received, pieces...)
	_, err := io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	span := p.span()
	all := attributesOf(span)
	for name := range all {
		if strings.HasPrefix(name, "server.") {
			delete(all, name)
		}
	}
	require.Equal(t, map[string]any{
		"http.request.method": "POST", "http.response.status_code": int64(200), "gen_ai.operation.name": "generate_content", "gen_ai.output.type": "speech",
		"gen_ai.provider.name": "openai", "gen_ai.request.model": "tts", "gen_ai.request.stream": true,
		"tokenpulse.source": "token_tap", "tokenpulse.vantage": "gateway", "tokenpulse.outcome": "success", "tokenpulse.tap.untimed": "tokenless",
		"tokenpulse.audio.duration": 4_802. / 48_000,
	}, roundedDuration(all))
	require.Equal(t, "generate_content tts", span.Name())
	kinds, tokens := channels(t, span)
	require.Equal(t, []string{"audio", "audio", "audio"}, kinds)
	require.Zero(t, tokens)
}

// roundedDuration replaces the length of audio, which is in whole nanoseconds.
func roundedDuration(all map[string]any) map[string]any {
	if seconds, ok := all["tokenpulse.audio.duration"].(float64); ok {
		all["tokenpulse.audio.duration"] = float64(int(seconds*48_000+0.5)) / 48_000
	}
	return all
}

func TestAudio_SpeechThatIsCutOrEmpty(t *testing.T) {
	cut := func(w http.ResponseWriter, req *http.Request) {
		speak("audio/pcm", closed(), "abcd")(w, req)
		panic(http.ErrAbortHandler)
	}
	for name, c := range map[string]struct {
		answer        http.HandlerFunc
		outcome, kind string
		chunks        int
	}{
		"cut":   {cut, "incomplete", "upstream_cut", 1},
		"empty": {speak("audio/pcm", nil), "error", "empty_answer", 0},
		"an error": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":{"type":"t"}}`, http.StatusBadRequest)
		}, "error", "t", 0},
		"a web page":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>sorry</html>") }, "error", "unexpected_answer", 0},
		"no audio yet": {func(w http.ResponseWriter, _ *http.Request) { stream(w)(`data: {"type":"speech.audio.done"}` + "\n\n") }, "error", "empty_answer", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, c.answer)
			response := p.open(speechPath, speechRequest)
			_, _ = io.Copy(io.Discard, response.Body)
			span := p.span()
			all := attributesOf(span)
			require.Equal(t, c.outcome, all["tokenpulse.outcome"])
			require.Equal(t, c.kind, all["error.type"])
			kinds, _ := channels(t, span)
			require.Len(t, kinds, c.chunks)
		})
	}
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func TestAudio_AClientThatGoesAwayCancelsSpeech(t *testing.T) {
	received := make(chan struct{})
	p := start(t, func(w http.ResponseWriter, req *http.Request) {
		speak("audio/pcm", received, "abcd")(w, req)
		<-req.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+speechPath, strings.NewReader(speechRequest))
	require.NoError(t, err)
	response, err := client(t).Do(request)
	require.NoError(t, err)
	listen(t, response.Body, received, "abcd")
	cancel()
	require.NoError(t, response.Body.Close())
	span := p.span()
	require.Equal(t, "cancelled", attributesOf(span)["tokenpulse.outcome"])
	require.NotContains(t, attributesOf(span), "tokenpulse.interrupted")
	kinds, _ := channels(t, span)
	require.Len(t, kinds, 1)
}

const audioAnswer = `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"audio":{"data":"AAAA"}}}]}` + "\n\n" +
	`data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"audio":{"data":"AAAA","transcript":"a"}}}]}` + "\n\n" + tokenEvent + finishEvent + doneEvent

// An event with audio and text is two chunks. They share a limit, and after it nothing is recorded.
func TestAudio_OfAnEventWithText(t *testing.T) {
	for limit, want := range map[int]string{4: "audio content audio content", 3: "audio content audio", 2: "audio content", 1: "audio"} {
		p := start(t, func(w http.ResponseWriter, _ *http.Request) { stream(w)(audioAnswer) }, func(cfg *Config) { cfg.MaxChunksPerStream = limit })
		p.post(chatPath, `{"model":"m","stream":true,"audio":{"format":"pcm16"},"messages":[]}`)
		span := p.span()
		kinds, _ := channels(t, span)
		require.Equal(t, want, strings.Join(kinds, " "))
		require.EqualValues(t, 4-limit, p.counterBy("limit", "chunks_dropped")["max_chunks_per_stream"])
		require.InDelta(t, 6./48_000, attributesOf(span)["tokenpulse.audio.duration"], 1e-9)
	}
}

// The network's part of the time to first token is that of the first token, not of audio before it.
func TestAudio_BeforeTheFirstTokenIsNoPartOfTheNetwork(t *testing.T) {
	received := make(chan struct{})
	audio, _, _ := strings.Cut(audioAnswer, "\n\n")
	answer := []string{audio + "\n\n", tokenEvent + `data: {"object":"chat.completion.chunk","choices":[],"time_info":{"queue_time":0,"prompt_time":0.000001}}` + "\n\n" + doneEvent}
	p := start(t, speak("text/event-stream", received, answer...))
	response := p.open(chatPath, chatRequest)
	listen(t, response.Body, received, answer...)
	_, _ = io.Copy(io.Discard, response.Body)
	span := p.span()
	times, _ := arrivals(t, span)
	require.Len(t, times, 2)
	first := float64(times[1]-int64(span.StartTimestamp())) / 1e9
	require.InDelta(t, first-1e-6, attributesOf(span)["tokenpulse.network.duration"], 2e-6)
}

// A turn starts when the server commits what the user said, and ends as the user interrupts it.
func TestAudio_ATurnThatTheUserInterrupts(t *testing.T) {
	const (
		committed  = `{"type":"input_audio_buffer.committed","event_id":"e","item_id":"i"}`
		transcript = `{"type":"response.output_audio_transcript.delta","event_id":"e","response_id":"resp_1","delta":"hi"}`
		audio      = `{"type":"response.output_audio.delta","event_id":"e","response_id":"resp_1","delta":"AAAA"}`
		cancelled  = `{"type":"response.done","event_id":"e","response":{"id":"resp_1","status":"cancelled","status_details":{"type":"cancelled","reason":"turn_detected"},"usage":{"output_tokens":9,"output_token_details":{"text_tokens":2,"audio_tokens":7}}}}`
	)
	p := start(t, upgrade(func(connection net.Conn, reader *bufio.Reader) {
		for _, message := range []string{committed, responseCreated, audio, transcript, audio, cancelled} {
			_, _ = connection.Write(frame(message, false))
		}
		_, _ = io.Copy(io.Discard, reader)
	}))
	connect(t, p)
	span := p.span()
	all := attributesOf(span)
	require.Equal(t, "cancelled", all["tokenpulse.outcome"])
	require.Equal(t, true, all["tokenpulse.interrupted"])
	require.EqualValues(t, 7, all["gen_ai.usage.audio.output_tokens"])
	require.NotContains(t, all, "tokenpulse.start_unseen")
	require.NotContains(t, all, "error.type")
	kinds, tokens := channels(t, span)
	require.Equal(t, []string{"audio", "content", "audio"}, kinds)
	require.Equal(t, 1, tokens)
	require.InDelta(t, 6./48_000, all["tokenpulse.audio.duration"], 1e-9)
}

func TestAudio_Transcriptions(t *testing.T) {
	var form bytes.Buffer
	fields := multipart.NewWriter(&form)
	file, err := fields.CreateFormFile("file", "a.wav")
	require.NoError(t, err)
	_, err = file.Write(bytes.Repeat([]byte("\r\n--\x00"), 1_000))
	require.NoError(t, err)
	require.NoError(t, fields.WriteField("model", "whisper"))
	require.NoError(t, fields.Close())
	for name, c := range map[string]struct {
		contentType, answer string
		outcome, untimed    any
		chunks              int
	}{
		"events":            {"text/event-stream", `data: {"type":"transcript.text.delta","delta":"a"}` + "\n\n" + `data: {"type":"transcript.text.done","text":"a"}` + "\n\n", "success", nil, 1},
		"JSON":              {"application/json", `{"text":"a"}`, "success", "whole", 0},
		"text":              {"text/plain", "a\n", "success", "whole", 0},
		"text of silence":   {"text/plain", "\n", "error", "whole", 0},
		"JSON of silence":   {"application/json", `{"text":""}`, "error", "whole", 0},
		"silence of tokens": {"application/json", `{"text":"","usage":{"type":"tokens","output_tokens":1}}`, "success", "tokenless", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				w.Header().Set("Content-Type", c.contentType)
				_, _ = io.WriteString(w, c.answer)
			})
			response, err := client(t).Post(p.url+"/v1/audio/transcriptions", fields.FormDataContentType(), bytes.NewReader(form.Bytes()))
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, response.Body)
			require.NoError(t, response.Body.Close())
			span := p.span()
			all := attributesOf(span)
			require.Equal(t, "whisper", all["gen_ai.request.model"])
			require.Equal(t, "generate_content", all["gen_ai.operation.name"])
			require.NotContains(t, all, "gen_ai.output.type")
			require.Equal(t, c.outcome, all["tokenpulse.outcome"])
			require.Equal(t, c.untimed, all["tokenpulse.tap.untimed"])
			kinds, _ := channels(t, span)
			require.Len(t, kinds, c.chunks)
		})
	}
}

// Audio of an answer that came as one document has a length, and no times.
func TestAudio_OfAWholeAnswer(t *testing.T) {
	wav := "RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\xbb\x00\x00\x00\x77\x01\x00\x02\x00\x10\x00data\x00\x00\x00\x00"
	data := base64.StdEncoding.EncodeToString([]byte(wav + strings.Repeat("\x00", 96_000)))
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"content":null,"audio":{"data":"`+data+`","transcript":"a"}},"finish_reason":"stop"}]}`)
	}, func(cfg *Config) { cfg.MaxEventBytes = 64 << 10 })
	p.post(chatPath, chatRequest)
	span := p.span()
	require.InDelta(t, 1, attributesOf(span)["tokenpulse.audio.duration"], 1e-9)
	require.Equal(t, "whole", attributesOf(span)["tokenpulse.tap.untimed"])
	kinds, _ := channels(t, span)
	require.Empty(t, kinds)
}
