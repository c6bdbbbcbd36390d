// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

// A tenth of a second of audio of 16 bits at 24 kHz, and a second in base64.
var (
	tenth  = strings.Repeat("\x00\x10", 2_400)
	second = base64.StdEncoding.EncodeToString([]byte(strings.Repeat(tenth, 10)))
)

// audioPlay is a play whose pieces hold audio, text, or neither.
type audioPlay struct {
	play
	first, last int // pieces with audio; -1 for none
	token       int // the first piece with text; -1 for none
	// seconds is the length of all audio.
	seconds              float64
	outcome, interrupted string
	model                string
}

const pause = 30 * time.Millisecond

func speechPlay(contentType, request string, pieces ...string) audioPlay {
	p := audioPlay{first: 0, token: -1, outcome: "success", model: "tts"}
	p.method, p.target, p.request, p.status = http.MethodPost, "/v1/audio/speech", []byte(request), http.StatusOK
	p.header = http.Header{"Content-Type": {contentType}}
	for _, piece := range pieces {
		p.pieces = append(p.pieces, []byte(piece))
	}
	return p
}

func event(text string) string { return "data: " + text + "\n\n" }

func audioPlays() []audioPlay {
	bytes := speechPlay("audio/pcm", `{"model":"tts","input":"a","voice":"v","response_format":"pcm"}`, slices.Repeat([]string{tenth[:2_400]}, 6)...)
	bytes.last, bytes.seconds = 5, .3

	delta := event(`{"type":"speech.audio.delta","audio":"` + second + `"}`)
	events := speechPlay("text/event-stream", `{"model":"tts","input":"a","voice":"v","response_format":"pcm","stream_format":"sse"}`,
		delta, delta, delta, event(`{"type":"speech.audio.done","usage":{"input_tokens":14,"output_tokens":101,"total_tokens":115}}`))
	events.last, events.seconds = 2, 3

	mp3 := speechPlay("audio/mpeg", `{"model":"tts","input":"a","voice":"v"}`, slices.Repeat([]string{"ID3" + tenth[:100]}, 3)...)
	mp3.last = 2

	chat := func(delta string) string {
		return event(`{"object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":` + delta + `}]}`)
	}
	spoken := speechPlay("text/event-stream", `{"model":"speaker","stream":true,"modalities":["text","audio"],"audio":{"voice":"v","format":"pcm16"},"messages":[]}`,
		chat(`{"audio":{"data":"`+second+`"}}`), chat(`{"audio":{"transcript":"a"}}`), chat(`{"audio":{"data":"`+second+`","transcript":" b"}}`),
		event(`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)+event("[DONE]"))
	spoken.target, spoken.last, spoken.token, spoken.seconds, spoken.model = "/v1/chat/completions", 2, 1, 2, "speaker"

	message := func(text string) string { return string(recorded.AppendFrame(nil, 0x81, []byte(text))) }
	turn := func(done string) audioPlay {
		p := speechPlay("", "",
			message(`{"type":"response.created","event_id":"e","response":{"id":"r","status":"in_progress"}}`),
			message(`{"type":"response.output_audio_transcript.delta","event_id":"e","response_id":"r","delta":"a"}`),
			message(`{"type":"response.output_audio.delta","event_id":"e","response_id":"r","delta":"`+second+`"}`),
			message(`{"type":"response.output_audio.delta","event_id":"e","response_id":"r","delta":"`+second+`"}`),
			message(`{"type":"response.done","event_id":"e","response":{"id":"r",`+done+`,"usage":{"input_tokens":9,"output_tokens":24,"output_token_details":{"text_tokens":9,"audio_tokens":15}}}}`))
		p.method, p.target, p.status = http.MethodGet, "/v1/realtime?model=talker", http.StatusSwitchingProtocols
		p.request = recorded.MaskedFrame(0x81, []byte(`{"type":"response.create"}`))
		p.first, p.last, p.token, p.seconds, p.model = 2, 3, 1, 2, "talker"
		return p
	}
	whole := turn(`"status":"completed"`)
	interrupted := turn(`"status":"cancelled","status_details":{"type":"cancelled","reason":"turn_detected"}`)
	interrupted.outcome, interrupted.interrupted = "cancelled", "true"
	return []audioPlay{bytes, events, mp3, spoken, whole, interrupted}
}

// Speech in bytes and by events, a chat with a voice and turns of a conversation pass through the built Collector. Their audio has
// the times at which it was sent, their text has TTFT, and an interruption is no success.
func TestTap_AudioHasAClockOfItsOwn(t *testing.T) {
	upstream := startScriptedUpstream(t)
	c := collector.StartTap(t, upstream.URL, "exporters::token_sli::metrics: {tokenpulse.audio.real_time_factor: {enabled: true}, tokenpulse.inter_audio_chunk_latency: {enabled: true}}")
	plays := audioPlays()
	for i := range plays {
		p := &plays[i]
		p.name, p.trace, p.pause = strconv.Itoa(i), traceOf(i), pause
		upstream.perform(t.Context(), c.Address, &p.play)
		p.requirePassed(t)
	}
	families := exposition.WaitForRequests(t, c.Collector, len(plays))
	c.Stop(t)
	derived := byTrace(t, otlpfile.ReadSpans(t, c.Derived))
	for i := range plays {
		p := &plays[i]
		span, ok := derived[p.trace]
		require.True(t, ok, p.target)
		p.requireNumbers(t, span)
	}

	for model, want := range map[string]struct{ audio, tokens, lengths, gaps int }{
		"tts": {3, 0, 2, 5 + 2 + 2}, "speaker": {1, 1, 1, 1}, "talker": {2, 2, 2, 2},
	} {
		count := func(name string) (n uint64) {
			for _, series := range families[name].GetMetric() {
				if exposition.Label(series, "gen_ai_request_model") == model {
					n += series.GetHistogram().GetSampleCount()
				}
			}
			return n
		}
		require.EqualValues(t, want.audio, count("tokenpulse_time_to_first_audio_seconds"), model)
		require.EqualValues(t, want.tokens, count("tokenpulse_time_to_first_token_seconds"), model)
		require.EqualValues(t, want.lengths, count("tokenpulse_audio_real_time_factor"), model)
		require.EqualValues(t, want.gaps, count("tokenpulse_inter_audio_chunk_latency_seconds"), model)
	}
	first := exposition.Find(t, families["tokenpulse_time_to_first_audio_seconds"], map[string]string{"gen_ai_request_model": "talker", "outcome": "cancelled"})
	require.EqualValues(t, 1, first.GetHistogram().GetSampleCount())
}

// requireNumbers requires numbers between the times at which pieces were sent, and at which later ones were.
func (p *audioPlay) requireNumbers(t *testing.T, span ptrace.Span) {
	t.Helper()
	all := span.Attributes().AsRaw()
	sent := func(piece int) float64 { return float64(p.stamps[piece]-int64(span.StartTimestamp())) / 1e9 }
	require.Equal(t, p.outcome, all[names.Outcome])
	require.Equal(t, p.interrupted == "true", all[names.Interrupted] == true)
	require.Equal(t, p.model, all["gen_ai.request.model"])
	// The time of a piece is between its own and that of the next one.
	require.GreaterOrEqual(t, all["tokenpulse.time_to_first_audio"], sent(p.first)-1e-6)
	require.Less(t, all["tokenpulse.time_to_first_audio"], sent(p.first+1))
	require.EqualValues(t, p.chunks(), all["tokenpulse.audio.chunk.count"])
	if p.token < 0 {
		require.NotContains(t, all, "tokenpulse.time_to_first_token")
		require.Contains(t, fmt.Sprint(all[names.Unmeasured]), "time_to_first_token=no_token")
	} else {
		require.GreaterOrEqual(t, all["tokenpulse.time_to_first_token"], sent(p.token)-1e-6)
		require.Less(t, all["tokenpulse.time_to_first_token"], sent(p.token+1))
	}
	if p.seconds == 0 {
		require.NotContains(t, all, "tokenpulse.audio.duration")
		require.NotContains(t, all, "tokenpulse.audio.real_time_factor")
		return
	}
	require.InDelta(t, p.seconds, all["tokenpulse.audio.duration"], 1e-6)
	took := p.seconds / all["tokenpulse.audio.real_time_factor"].(float64)
	require.GreaterOrEqual(t, took, sent(p.last)-sent(p.first+1)-1e-5)
	require.Less(t, took, sent(p.last+1)-sent(p.first)+1e-5)
}

// chunks is the number of pieces with audio: the chat has one of text between two.
func (p *audioPlay) chunks() int {
	if p.token > p.first {
		return p.last - p.first
	}
	return p.last - p.first + 1
}
