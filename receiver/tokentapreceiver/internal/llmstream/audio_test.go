// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// The events of this file were written by hand after the references of the services, and the audio in them is noise.

const (
	speech      = "/v1/audio/speech"
	transcribed = "/v1/audio/transcriptions"
	pcmGemini   = "audio/L16;codec=pcm;rate=24000"
)

func inlineAudio(mediaType, data string) string {
	return `{"inlineData":{"mimeType":"` + mediaType + `","data":"` + data + `"}}`
}

func TestDecoder_ReadsAudio(t *testing.T) {
	const chat = "/v1/chat/completions"
	for _, c := range []answer{
		{
			"chat: audio, its transcript, and both in one event", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","audio":{"id":"audio_1","transcript":"a"}}}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"audio":{"data":"AAAA"}}}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"audio":{"transcript":"b","data":"AAAA"}}}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"audio":{"data":""}}}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"audio":{"expires_at":1757647879}},"finish_reason":"stop"}]}`,
				`{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":40,"completion_tokens_details":{"audio_tokens":33,"text_tokens":7}}}`,
				`[DONE]`,
			), OpenAIChat, "0c? 1a 2ca?", "stop", "", 40, true,
		},
		{
			"chat: a running total counts no tokens of text if there is audio", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"audio":{"data":"AAAA"}}}],"usage":{"prompt_tokens":9,"completion_tokens":9}}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":12}}`,
			), OpenAIChat, "0a 1c?", "", "", 12, false,
		},
		{
			"chat: a whole answer", chat, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":null,"audio":{"id":"audio_1","data":"AAAA","transcript":"a"}},"finish_reason":"stop"}],"usage":{"completion_tokens":40}}`,
			OpenAIChat, "0ca?", "stop", "", 40, true,
		},
		{
			"Gemini: audio and text", "/v1beta/models/m:streamGenerateContent", sse(
				`{"candidates":[{"content":{"parts":[`+inlineAudio(pcmGemini, "AAAA")+`]}}]}`,
				`{"candidates":[{"content":{"parts":[{"text":"a"},`+inlineAudio(pcmGemini, "AAAA")+`]}}]}`,
				`{"candidates":[{"content":{"parts":[`+inlineAudio("image/png", "AAAA")+`]},"finishReason":"STOP"}],"usageMetadata":{"candidatesTokenCount":30}}`,
			), Gemini, "0a 1ca?", "STOP", "", 30, true,
		},
		{
			"speech", speech, sse(
				`{"type":"speech.audio.delta","audio":"AAAA"}`, `{"type":"speech.audio.delta","audio":"AAAAAA=="}`,
				`{"type":"speech.audio.done","usage":{"input_tokens":14,"output_tokens":101,"total_tokens":115}}`,
			), OpenAISpeech, "0a 1a", "", "", 101, true,
		},
		{
			"speech of Mistral, at another path", "/x", named(
				`{"type":"speech.audio.delta","audio_data":"AAAA"}`, `{"type":"speech.audio.done","usage":{"prompt_tokens":4,"completion_tokens":0}}`,
			), OpenAISpeech, "0a", "", "", 0, true,
		},
		{
			"speech of SGLang", speech, sse(`{"object":"audio.speech.chunk","audio":{"data":"AAAA","format":"wav"},"finish_reason":null}`, `{"object":"audio.speech.chunk","audio":null,"finish_reason":"stop"}`),
			OpenAISpeech, "0a", "stop", "", -1, true,
		},
		{
			"speech: an error", speech, sse(`{"type":"speech.audio.delta","audio":"AAAA"}`, `{"error":{"type":"server_error"}}`),
			OpenAISpeech, "0a", "", "server_error", -1, false,
		},
		{
			"transcription", transcribed, sse(
				`{"type":"transcript.text.delta","delta":"a","logprobs":[{"token":"a","logprob":-0.1,"bytes":[97]}]}`, `{"type":"transcript.text.delta","delta":" b c","logprobs":[{"token":" b"},{"token":" c"}]}`,
				`{"type":"transcript.text.segment","id":"seg_001","text":"a b c"}`,
				`{"type":"transcript.text.done","text":"a b c","usage":{"type":"tokens","input_tokens":14,"input_token_details":{"text_tokens":0,"audio_tokens":14},"output_tokens":45,"total_tokens":59}}`,
			), OpenAITranscription, "0c1 1c2", "", "", 45, true,
		},
		{
			"transcription by segments", transcribed, sse(
				`{"type":"transcript.text.segment","id":"seg_001","text":"a b"}`, `{"type":"transcript.text.segment","id":"seg_002","text":"c"}`,
				`{"type":"transcript.text.done","text":"a b c","usage":{"type":"duration","seconds":12}}`,
			), OpenAITranscription, "0c? 1c?", "", "", -1, true,
		},
		{
			"transcription of Mistral", transcribed, named(
				`{"type":"transcription.language","audio_language":"en"}`, `{"type":"transcription.text.delta","text":"a"}`, `{"type":"transcription.text.delta","text":" b"}`,
				`{"type":"transcription.done","model":"voxtral-mini-2507","text":"a b","usage":{"prompt_audio_seconds":4,"prompt_tokens":8,"completion_tokens":27}}`,
			), OpenAITranscription, "1c? 2c?", "", "", 27, true,
		},
		{
			"translation of vLLM", "/v1/audio/translations", sse(
				`{"id":"trsl-1","object":"translation.chunk","created":1,"model":"m","choices":[{"delta":{"content":"a"},"finish_reason":null,"stop_reason":null}]}`,
				`{"id":"trsl-1","object":"translation.chunk","created":1,"model":"m","choices":[{"delta":{"content":""},"finish_reason":"stop","stop_reason":null}]}`,
				`{"id":"trsl-1","object":"translation.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}`, `[DONE]`,
			), OpenAITranscription, "0c?", "stop", "", 2, true,
		},
		{
			"transcription of vLLM, at another path", "/x", sse(`{"id":"trsc-1","object":"transcription.chunk","choices":[{"delta":{"content":"a"}}]}`, `[DONE]`),
			OpenAITranscription, "0c?", "", "", -1, true,
		},
		{
			"transcription: a whole answer", transcribed, `{"text":"a b","usage":{"type":"tokens","input_tokens":14,"output_tokens":45}}`,
			OpenAITranscription, "0c?", "", "", 45, true,
		},
	} {
		t.Run(c.name, c.check)
	}
}

// Silence has a transcript without text: the answer is empty, and of its format.
func TestTranscription_OfSilenceIsNotForeign(t *testing.T) {
	s := decode(AnswerHead{Path: transcribed, Status: 200}, testLimits, []byte(`{"text":""}`))
	assert.False(t, s.Foreign)
	assert.Zero(t, s.TokenChunks)
}

// encodings of audio in base64 that say how long a second is.
var audioRates = map[string]struct {
	rate  int // bytes a second
	event func(data string) string
	head  AnswerHead
}{
	"pcm16 of chat":    {48_000, chatAudio, AnswerHead{Path: "/v1/chat/completions", Asked: &RequestFacts{AudioFormat: "pcm16"}}},
	"pcm of speech":    {48_000, speechAudio, AnswerHead{Path: speech, Asked: &RequestFacts{AudioFormat: "pcm"}}},
	"Gemini's PCM":     {48_000, geminiAudio("audio/pcm;rate=24000"), geminiHead},
	"PCM at 16 kHz":    {32_000, geminiAudio("audio/pcm; rate=16000"), geminiHead},
	"L16":              {48_000, geminiAudio(pcmGemini), geminiHead},
	"two channels":     {96_000, geminiAudio("audio/pcm;rate=24000;channels=2"), geminiHead},
	"PCM without rate": {0, geminiAudio("audio/pcm"), geminiHead},
	"MP3":              {0, geminiAudio("audio/mp3"), geminiHead},
	"mp3 of chat":      {0, chatAudio, AnswerHead{Path: "/v1/chat/completions", Asked: &RequestFacts{AudioFormat: "mp3"}}},
	"unknown":          {0, speechAudio, AnswerHead{Path: speech}},
}

var geminiHead = AnswerHead{Path: "/v1beta/models/m:streamGenerateContent"}

func chatAudio(data string) string {
	return `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"audio":{"data":"` + data + `"}}}]}`
}

func speechAudio(data string) string { return `{"type":"speech.audio.delta","audio":"` + data + `"}` }

func geminiAudio(mediaType string) func(data string) string {
	return func(data string) string {
		return `{"candidates":[{"content":{"parts":[` + inlineAudio(mediaType, data) + `]}}]}`
	}
}

// wantLength is the length of audio, unless its rate is 0.
func wantLength(bytes, rate int) optional.Value[time.Duration] {
	if rate == 0 {
		return optional.Value[time.Duration]{}
	}
	return optional.Of(time.Duration(math.Round(float64(bytes) * 1e9 / float64(rate))))
}

// noise returns base64 of as many random bytes, as JSON encoders write it.
func noise(random *rand.Rand, n int) string {
	audio := make([]byte, n)
	for i := range audio {
		audio[i] = byte(random.Uint32())
	}
	text := base64.StdEncoding.EncodeToString(audio)
	switch random.IntN(4) {
	case 0:
		text = strings.ReplaceAll(text, "/", `\/`) // of PHP
	case 1:
		text = strings.ReplaceAll(text, "+", `\u002B`) // of .NET
	case 2:
		text = strings.TrimRight(text, "=")
	}
	return text
}

// The same audio within the limit of an event and far beyond it, in all framings and cut anywhere, has the same length.
func TestAudioDuration_IsThatOfTheBytes(t *testing.T) {
	random := rand.New(rand.NewPCG(43, 1))
	limits := Limits{EventBytes: 4 << 10}
	for name, c := range audioRates {
		for framing, f := range map[string]struct{ contentType, begin, between, end string }{
			"SSE":        {"text/event-stream", "data: ", "\n\ndata: ", "\n\n"},
			"JSON lines": {"application/x-ndjson", "  ", "\n ", "\n"},
			"JSON array": {"application/json", "[", ",", "]"},
		} {
			total := time.Duration(0)
			var events []string
			for range 8 {
				n := 1 + random.IntN(9_000)
				events = append(events, c.event(noise(random, n)))
				total += wantLength(n, c.rate).Value
			}
			want := optional.Value[time.Duration]{Value: total, Known: c.rate > 0}
			body := []byte(f.begin + strings.Join(events, f.between) + f.end)
			head := c.head
			head.ContentType = f.contentType
			whole := decode(head, testLimits, body)
			require.Equal(t, want, whole.AudioDuration, "%s in %s", name, framing)
			require.EqualValues(t, 8, whole.ChunksOf(Audio))
			require.Zero(t, whole.TokenChunks)
			elided := decode(head, limits, body)
			require.Equal(t, whole, elided, "%s in %s, beyond the limit", name, framing)
			for range 20 {
				require.Equal(t, whole, decode(head, limits, body, offsets(random, len(body))...), "%s in %s", name, framing)
			}
		}
	}
}

// Two texts and two strings of audio in an event beyond the limit: what was left out belongs to its string.
func TestAudioDuration_OfSeveralStringsOfALongEvent(t *testing.T) {
	part := func(n int) string {
		return inlineAudio("audio/pcm;rate=24000", base64.StdEncoding.EncodeToString(make([]byte, n)))
	}
	event := `{"candidates":[{"content":{"parts":[` + part(4_800) + `,{"text":"` + strings.Repeat("a", 3_000) + `"},` + part(9_600) + `]}}],"p":"` + strings.Repeat("b", 3_000) + `"}`
	s := decode(geminiHead, Limits{EventBytes: 8_000}, []byte(sse(event)))
	assert.Equal(t, optional.Of(300*time.Millisecond), s.AudioDuration)
	lines := strings.Replace(sse(event), `,{"text"`, "\ndata: ,{\"text\"", 1)
	assert.Equal(t, s, decode(geminiHead, Limits{EventBytes: 8_000}, []byte(lines)), "in two lines")
	many := sse(`{"candidates":[{"content":{"parts":[` + strings.Repeat(part(4_800)+",", 30) + part(9_600) + `]}}]}`)
	assert.False(t, decode(geminiHead, Limits{EventBytes: 8_000}, []byte(many)).AudioDuration.Known, "parts were left out")
	skipped := sse(geminiAudio("audio/pcm;rate=24000")("AAAA"), `{`+strings.Repeat(`"a":1,`, 2_000)+`"b":1}`)
	s = decode(geminiHead, Limits{EventBytes: 8_000}, []byte(skipped))
	assert.EqualValues(t, 1, s.Unparsed.TooLong)
	assert.False(t, s.AudioDuration.Known, "an event was skipped")
}

// wav returns the header of a WAV file, as encoders that stream write it: with sizes that are not known yet.
func wav(rate uint32, more string) string {
	header := []byte("RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	header = binary.LittleEndian.AppendUint32(header, rate/2)
	header = binary.LittleEndian.AppendUint32(header, rate)
	header = append(header, "\x02\x00\x10\x00"+more+"data\xff\xff\xff\xff"...)
	return string(header)
}

// listChunk is what FFmpeg writes before the samples.
const listChunk = "LIST\x1a\x00\x00\x00INFOISFT\x0d\x00\x00\x00Lavf61.7.100\x00\x00"

func TestAudioDuration_OfWAV(t *testing.T) {
	encode := func(audio string) string { return base64.StdEncoding.EncodeToString([]byte(audio)) }
	samples := strings.Repeat("\x01\x02", 4_000)
	for name, c := range map[string]struct {
		events []string
		want   optional.Value[time.Duration]
	}{
		"a header in the first event":        {[]string{wav(32_000, "") + samples, samples}, optional.Of(500 * time.Millisecond)},
		"a header in each event":             {[]string{wav(32_000, "") + samples, wav(32_000, listChunk) + samples}, optional.Of(500 * time.Millisecond)},
		"a header alone":                     {[]string{wav(32_000, listChunk), samples}, optional.Of(250 * time.Millisecond)},
		"a header that is cut":               {[]string{wav(32_000, "")[:40], samples}, optional.Value[time.Duration]{}},
		"a header with a chunk that is long": {[]string{wav(32_000, "LIST\x00\x01\x00\x01"+samples)}, optional.Value[time.Duration]{}},
		"a header without a rate":            {[]string{wav(0, "") + samples}, optional.Value[time.Duration]{}},
		"no header":                          {[]string{samples}, optional.Value[time.Duration]{}},
	} {
		var events []string
		for _, audio := range c.events {
			events = append(events, speechAudio(encode(audio)))
		}
		head := AnswerHead{Path: speech, Asked: &RequestFacts{AudioFormat: "wav"}}
		assert.Equal(t, c.want, decode(head, testLimits, []byte(sse(events...))).AudioDuration, name)
		assert.Equal(t, c.want, decode(head, Limits{EventBytes: 40 << 10}, []byte(sse(events...))).AudioDuration, name)
		head.ContentType = "audio/wav"
		body := []byte(strings.Join(c.events, ""))
		if strings.HasPrefix(name, "a header in each") || strings.HasSuffix(name, "cut") {
			continue
		}
		assert.Equal(t, c.want, decode(head, testLimits, body).AudioDuration, "%s, in bytes", name)
	}
}

// An answer of audio without events: each read is a chunk, unless it follows at once. Only its first bytes are kept.
func TestDecoder_ReadsAudioWithoutEvents(t *testing.T) {
	pcm := strings.Repeat("\x00\x20\r\n", 12_000) // which begins like blanks and line ends
	for name, c := range map[string]struct {
		head AnswerHead
		body string
		want optional.Value[time.Duration]
	}{
		"PCM that was asked for":       {AnswerHead{ContentType: "audio/pcm", Asked: &RequestFacts{AudioFormat: "pcm"}}, pcm, optional.Of(time.Second)},
		"PCM whose type says the rate": {AnswerHead{ContentType: "audio/pcm;rate=16000"}, pcm, optional.Of(1500 * time.Millisecond)},
		"PCM whose head says the rate": {AnswerHead{ContentType: "audio/pcm", Header: http.Header{"X-Sample-Rate": {"48000"}, "X-Channels": {"1"}, "X-Bit-Depth": {"16"}}, Asked: &RequestFacts{AudioFormat: "pcm"}}, pcm, optional.Of(500 * time.Millisecond)},
		"WAV":                          {AnswerHead{ContentType: "audio/wav"}, wav(96_000, listChunk) + pcm, optional.Of(500 * time.Millisecond)},
		"WAV of an unknown type":       {AnswerHead{ContentType: "application/octet-stream"}, wav(96_000, "") + pcm, optional.Of(500 * time.Millisecond)},
		"MP3":                          {AnswerHead{ContentType: "audio/mpeg", Asked: &RequestFacts{AudioFormat: "mp3"}}, "ID3" + pcm, optional.Value[time.Duration]{}},
		"zeros, as of an event stream": {AnswerHead{ContentType: "Audio/PCM", Asked: &RequestFacts{AudioFormat: "pcm"}}, strings.Repeat("\x00", 48_000), optional.Of(time.Second)},
		"a brace at the beginning":     {AnswerHead{ContentType: "audio/opus"}, "{" + pcm, optional.Value[time.Duration]{}},
	} {
		c.head.Path, c.head.Status = speech, 200
		var times []int64
		d := NewDecoder(c.head, testLimits, func(c Chunk) { times = append(times, c.Time) })
		start := 0
		for i, end := range []int{1, 7, 300, 20_000, len(c.body)} { // the third read follows at once
			d.Write([]byte(c.body[start:end]), []int64{1e6, 5e6, 5_999_999, 6e6, 9e6}[i])
			start = end
		}
		d.End(10e6)
		s := d.Observation()
		assert.Equal(t, c.want, s.AudioDuration, name)
		assert.Equal(t, OpenAISpeech, s.Format, name)
		assert.EqualValues(t, 4, s.ChunksOf(Audio), name)
		assert.Equal(t, []int64{1e6, 5e6, 6e6, 9e6}, times, name)
		assert.EqualValues(t, 5, s.Events, name)
		assert.Zero(t, s.TokenChunks, name)
		assert.True(t, s.Streamed && s.Unframed && !s.Ended && !s.Foreign, name)
	}
}

func TestDecoder_ReadsTranscriptsWithoutEvents(t *testing.T) {
	for contentType, body := range map[string]string{
		"text/plain; charset=utf-8": " {[music]}\n", "text/vtt": "WEBVTT\n\n00:00.000 --> 00:01.000\na\n", "application/x-subrip": "1\n00:00:00,000 --> 00:00:01,000\na\n",
	} {
		s := decode(AnswerHead{Path: transcribed, Status: 200, ContentType: contentType}, testLimits, []byte(body), 1, 4)
		assert.Equal(t, OpenAITranscription, s.Format, contentType)
		assert.EqualValues(t, 1, s.TokenChunks, contentType)
		assert.True(t, !s.Streamed && s.Unframed && !s.Ended, contentType)
	}
	silence := decode(AnswerHead{Path: transcribed, Status: 200, ContentType: "text/plain"}, testLimits, []byte("\n"))
	assert.Zero(t, silence.TokenChunks)
	page := decode(AnswerHead{Path: transcribed, Status: 200, ContentType: "text/html"}, testLimits, []byte("<html>sorry</html>"))
	assert.True(t, page.Foreign && !page.Unframed)
	failure := decode(AnswerHead{Path: speech, Status: 500, ContentType: "application/json"}, testLimits, []byte(`{"error":{"type":"t"}}`))
	assert.Equal(t, "t", failure.Error)
	text := decode(AnswerHead{Path: speech, Status: 502, ContentType: "audio/mpeg"}, testLimits, []byte("bad gateway"))
	assert.Zero(t, text.ChunksOf(Audio), "an answer with an error has no audio")
}

// An hour of audio, in one event of base64 and in bytes.
func TestDecoder_MeasuresAnHourInBoundedMemory(t *testing.T) {
	const limit, hour = 1 << 20, 3600 * pcm16Rate
	asked := &RequestFacts{AudioFormat: "pcm"}
	for name, c := range map[string]struct {
		head        AnswerHead
		begin, end  string
		bytes       int
		framedBytes int
	}{
		"an event": {AnswerHead{Path: speech, Asked: asked, Status: 200}, `data: {"type":"speech.audio.delta","audio":"`, "\"}\n\n", hour / 3 * 4, 0},
		"bytes":    {AnswerHead{Path: speech, Asked: asked, Status: 200, ContentType: "audio/pcm"}, "", "", hour, 0},
	} {
		memory := NewMemory(2 * limit)
		account := memory.Account()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d := NewDecoder(c.head, Limits{EventBytes: limit, Memory: &account}, nil)
		d.Write([]byte(c.begin), 1)
		piece := bytes.Repeat([]byte("AbC/"), 12<<10)
		for left := c.bytes; left > 0; left -= len(piece) {
			d.Write(piece[:min(left, len(piece))], 2)
		}
		d.Write([]byte(c.end), 3)
		d.End(4)
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*limit), name)
		assert.Zero(t, account.Refusals(), name)
		o := d.Observation()
		assert.Equal(t, optional.Of(time.Hour), o.AudioDuration, name)
		assert.Positive(t, o.ChunksOf(Audio), name)
	}
}

func audioDelta(data string) string {
	return `{"type":"response.output_audio.delta","event_id":"e","response_id":"r","delta":"` + data + `"}`
}

// The session, or else the response, says how its audio is encoded.
func TestRealtime_AudioDuration(t *testing.T) {
	data := base64.StdEncoding.EncodeToString(make([]byte, 4_800))
	session := func(members string) string {
		return `{"type":"session.updated","event_id":"e","session":{` + members + `}}`
	}
	for name, c := range map[string]struct {
		session, created string
		want             int // bytes a second
	}{
		"nothing is said":                      {session(`"model":"m"`), created("r"), 48_000},
		"PCM":                                  {session(`"audio":{"output":{"format":{"type":"audio/pcm","rate":24000}}}`), created("r"), 48_000},
		"another rate":                         {session(`"audio":{"output":{"format":{"type":"audio/pcm","rate":16000}}}`), created("r"), 32_000},
		"G.711":                                {session(`"audio":{"output":{"format":{"type":"audio/pcmu"}}}`), created("r"), 8_000},
		"the first version":                    {session(`"output_audio_format":"pcm16"`), created("r"), 48_000},
		"G.711 in the first version":           {session(`"output_audio_format":"g711_ulaw"`), created("r"), 8_000},
		"an unknown format":                    {session(`"audio":{"output":{"format":{"type":"audio/opus"}}}`), created("r"), 0},
		"the response has a format of its own": {session(`"output_audio_format":"g711_ulaw"`), `{"type":"response.created","event_id":"e","response":{"id":"r","audio":{"output":{"format":{"type":"audio/pcm","rate":24000}}}}}`, 48_000},
	} {
		got := converse(realtime, testLimits, 0, nil, c.session, `>{"type":"response.create"}`, c.created, audioDelta(data), strings.Replace(audioDelta(data), "output_", "", 1), done("r", 9))
		require.Len(t, got, 1, name)
		assert.Equal(t, []int64{3, 4}, got[0].Times, name)
		assert.Equal(t, wantLength(9_600, c.want), got[0].AudioDuration, name)
		assert.Zero(t, got[0].TokenChunks, name)
	}
}

// A message that was skipped may be one of each open response.
func TestRealtime_AudioDurationIsUnknownAfterAGap(t *testing.T) {
	got := converse(realtime, Limits{EventBytes: 1 << 10}, 0, nil, created("r"), created("other"), audioDelta("AAAA"),
		`{`+strings.Repeat(`"a":1,`, 1_000)+`"b":1}`, strings.Replace(audioDelta("AAAA"), `"r"`, `"other"`, 1), done("other", 1), done("r", 1))
	require.Len(t, got, 2)
	for _, c := range got {
		assert.EqualValues(t, 1, c.ChunksOf(Audio))
		assert.False(t, c.AudioDuration.Known)
	}
}

func TestRealtime_Interruptions(t *testing.T) {
	ended := func(status, details string) string {
		return `{"type":"response.done","event_id":"e","response":{"id":"r","status":"` + status + `","status_details":` + details + `,"usage":{"output_tokens":3}}}`
	}
	for name, c := range map[string]struct {
		done                   string
		audio                  bool
		cancelled, interrupted bool
	}{
		"the user speaks":                           {ended("cancelled", `{"type":"cancelled","reason":"turn_detected"}`), true, true, true},
		"the user speaks before the first audio":    {ended("cancelled", `{"type":"cancelled","reason":"turn_detected"}`), false, true, true},
		"the user speaks, as incomplete":            {ended("incomplete", `{"reason":"turn_detected"}`), true, true, true},
		"the client hears the user":                 {ended("cancelled", `{"type":"cancelled","reason":"client_cancelled"}`), true, true, true},
		"the client cancels before the first audio": {ended("cancelled", `{"type":"cancelled","reason":"client_cancelled"}`), false, true, false},
		"cancelled without a reason":                {ended("cancelled", `null`), true, true, false},
		"a limit of tokens":                         {ended("incomplete", `{"type":"incomplete","reason":"max_output_tokens"}`), true, false, false},
		"completed":                                 {ended("completed", `null`), true, false, false},
	} {
		messages := []string{`>{"type":"response.create"}`, created("r")}
		if c.audio {
			messages = append(messages, audioDelta("AAAA"))
		}
		got := converse(realtime, testLimits, 0, nil, append(messages, c.done)...)
		require.Len(t, got, 1, name)
		assert.Equal(t, c.cancelled, got[0].Cancelled, name)
		assert.Equal(t, c.interrupted, got[0].Interrupted, name)
		assert.True(t, got[0].Observation.Ended, name)
	}
}

// A turn ends with turnComplete, also after an interruption: late audio belongs to it.
func TestGeminiLive_Interruptions(t *testing.T) {
	live := AnswerHead{Path: "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent", Status: 101}
	audio := func(data string) string {
		return `{"serverContent":{"modelTurn":{"parts":[` + inlineAudio("audio/pcm;rate=24000", data) + `]}}}`
	}
	second := base64.StdEncoding.EncodeToString(make([]byte, 48_000))
	got := converse(live, testLimits, 0, nil,
		`>{"realtime_input":{"activity_end":{}}}`, audio(second), `{"serverContent":{"interrupted":true}}`, audio(second), `{"serverContent":{"turnComplete":true}}`, // 4
		`>{"client_content":{"turn_complete":true}}`, audio(second), `{"serverContent":{"outputTranscription":{"text":"a"}}}`, `{"serverContent":{"turnComplete":true},"usageMetadata":{"responseTokenCount":4}}`, // 8
		`>{"tool_response":{}}`, `{"serverContent":{"modelTurn":{"parts":[{"text":"a"}]},"turnComplete":true,"interrupted":true}}`,
	)
	require.Len(t, got, 3)
	assert.Equal(t, []int64{0, 5, 9}, []int64{got[0].Start, got[1].Start, got[2].Start}, "Google's Python SDK writes names with underscores")
	assert.Equal(t, []int64{4, 8, 10}, []int64{got[0].Ended, got[1].Ended, got[2].Ended})
	for i, interrupted := range []bool{true, false, true} {
		assert.Equal(t, interrupted, got[i].Interrupted, i)
		assert.Equal(t, interrupted, got[i].Cancelled, i)
	}
	assert.Equal(t, []string{"interrupted"}, got[0].FinishReasons)
	assert.Equal(t, []string{"turnComplete"}, got[1].FinishReasons)
	assert.Equal(t, []string{"interrupted"}, got[2].FinishReasons)
	assert.Equal(t, optional.Of(2*time.Second), got[0].AudioDuration)
	assert.Equal(t, optional.Of(time.Second), got[1].AudioDuration)
	assert.EqualValues(t, 1, got[1].TokenChunks)
}

func TestRequestOf_ReadsWhatAudioIsAskedFor(t *testing.T) {
	form := func(fields ...string) string {
		var b strings.Builder
		for i := 0; i < len(fields); i += 2 {
			fmt.Fprintf(&b, "--b0und\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n", fields[i], fields[i+1])
		}
		return b.String() + "--b0und--\r\n"
	}
	file := strings.Repeat("\r\n--b\x00", 1_000)
	slow := Pauses{Long: true}
	for name, c := range map[string]struct {
		path, body string
		want       RequestFacts
	}{
		"speech": {
			speech, `{"model":"m","input":"a","voice":"alloy","response_format":"pcm"}`,
			RequestFacts{Model: "m", Operation: "generate_content", Output: "speech", Format: OpenAISpeech, AudioFormat: "pcm", Pauses: slow},
		},
		"speech by events": {
			speech, `{"model":"m","stream_format":"sse"}`, RequestFacts{Model: "m", Stream: true, Operation: "generate_content", Output: "speech", Format: OpenAISpeech, Pauses: slow},
		},
		"chat with audio": {
			"/v1/chat/completions", `{"model":"m","modalities":["text","audio"],"audio":{"voice":"alloy","format":"pcm16"},"response_format":{"type":"json_object"},"stream":true}`,
			RequestFacts{Model: "m", Stream: true, Operation: "chat", Format: OpenAIChat, AudioFormat: "pcm16", Pauses: slow},
		},
		"a form": {
			transcribed, form("file", file, "model", "m", "language", "en", "stream", "True"),
			RequestFacts{Model: "m", Stream: true, Operation: "generate_content", Format: OpenAITranscription, Pauses: slow},
		},
		"a form that is cut in its file": {
			transcribed, form("model", "m", "stream", "false", "file", file)[:3_000], RequestFacts{Model: "m", Operation: "generate_content", Format: OpenAITranscription, Pauses: slow},
		},
		"a form that is cut before its model": {
			transcribed, form("file", file, "model", "m")[:3_000], RequestFacts{Operation: "generate_content", Format: OpenAITranscription, Pauses: slow},
		},
		"no form": {transcribed, "--", RequestFacts{Operation: "generate_content", Format: OpenAITranscription, Pauses: slow}},
		"a form without end of its first line": {
			transcribed, strings.Repeat("-", 1<<20), RequestFacts{Operation: "generate_content", Format: OpenAITranscription, Pauses: slow},
		},
	} {
		assert.Equal(t, c.want, RequestOf(c.path, "", []byte(c.body)), name)
	}
}
