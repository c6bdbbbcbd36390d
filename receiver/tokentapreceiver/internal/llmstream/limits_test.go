// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

func chatEvent(text string) string {
	return `{"object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"` + text + `"}}]}`
}

// An event of 64 MiB between two short ones, in all framings.
func TestDecoder_SkipsALongEventInBoundedMemory(t *testing.T) {
	const long = 64 << 20
	limits := Limits{EventBytes: 1 << 20}
	chat := func(text string) []byte { return []byte(chatEvent(text)) }
	converse := func(text string) []byte {
		return frame([]byte("\x0b:event-type\x07\x00\x11contentBlockDelta"), []byte(`{"delta":{"text":"`+text+`"}}`))
	}
	for name, c := range map[string]struct {
		x      AnswerHead
		parts  [3][]byte // before the long event, its beginning, after it
		length int
	}{
		"SSE": {
			AnswerHead{Path: "/v1/chat/completions"},
			[3][]byte{[]byte(sse(string(chat("a")))), []byte("data: {\"choices\":{"), []byte("\"z\":0}}\n\n" + sse(string(chat("b"))))},
			long,
		},
		"JSON lines": {
			AnswerHead{Path: "/v1/chat/completions", ContentType: "application/x-ndjson"},
			[3][]byte{append(chat("a"), '\n'), []byte("{\"choices\":{"), append([]byte("\"z\":0}}\n"), chat("b")...)},
			long,
		},
		"JSON array": {
			AnswerHead{Path: "/v1/chat/completions", ContentType: "application/json"},
			[3][]byte{append([]byte("["), chat("a")...), []byte(",{\"choices\":{"), append(append([]byte("\"z\":0}},"), chat("b")...), ']')},
			long,
		},
		"WebSocket": {
			AnswerHead{Path: "/v1/realtime", Status: 101},
			[3][]byte{
				recorded.AppendFrame(nil, 0x81, []byte(`{"type":"response.output_text.delta","event_id":"e","delta":"a"}`)),
				{0x81, 127, 0, 0, 0, 0, long >> 24 & 0xff, long >> 16 & 0xff, 0, 0},
				recorded.AppendFrame(nil, 0x81, []byte(`{"type":"response.output_text.delta","event_id":"e","delta":"b"}`)),
			},
			long,
		},
		"AWS frames": { // which are at most 16 MiB
			AnswerHead{Path: "/model/m/converse-stream", ContentType: "application/vnd.amazon.eventstream"},
			[3][]byte{converse("a"), converse(strings.Repeat("x", 8<<20)), converse("b")},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			filler := bytes.Repeat([]byte(`"a":12, `), 4<<10) // members remain
			var chunks []Chunk
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d := newAnswerDecoder(c.x, limits, func(c Chunk) { chunks = append(chunks, c) })
			d.Write(c.parts[0], 1)
			d.Write(c.parts[1], 2)
			for range c.length / len(filler) {
				d.Write(filler, 3)
			}
			d.Write(c.parts[2], 4)
			d.End(5)
			runtime.ReadMemStats(&after)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*limits.EventBytes))
			o := d.Observation()
			require.Len(t, chunks, 2)
			assert.Equal(t, []int64{0, 2}, []int64{chunks[0].Index, chunks[1].Index})
			assert.Equal(t, Unparsed{TooLong: 1}, o.Unparsed)
			assert.True(t, o.Unparsed.Any())
			assert.Equal(t, int64(3), o.Events)
		})
	}
}

func TestDecoder_StopsAtABrokenFraming(t *testing.T) {
	good := frame([]byte("\x0b:event-type\x07\x00\x11contentBlockDelta"), []byte(`{"delta":{"text":"a"}}`))
	huge := frame(nil, nil)
	copy(huge, "\x7f\xff\xff\xff")
	flipped := bytes.Clone(good)
	flipped[len(flipped)-8] ^= 1
	prelude := bytes.Clone(good)
	prelude[8] ^= 1
	body := prelude[:len(prelude)-crcBytes]
	binary.BigEndian.PutUint32(prelude[len(body):], crc32.ChecksumIEEE(body))
	x := AnswerHead{Path: "/model/m/converse-stream", ContentType: "application/vnd.amazon.eventstream"}
	for name, bad := range map[string][]byte{"message checksum": flipped, "prelude checksum": prelude, "absurd length": huge, "text": []byte("<html>not a frame</html>")} {
		s := decode(x, testLimits, append(append(bytes.Clone(good), bad...), good...))
		assert.Equal(t, Unparsed{Corrupt: 1}, s.Unparsed, name)
		assert.Len(t, s.Chunks, 1, name)
	}
	message := recorded.AppendFrame(nil, 0x81, []byte(`{"type":"response.output_text.delta","event_id":"e","delta":"a"}`))
	for name, first := range map[string]byte{"compressed": 0xc1, "reserved opcode": 0x83, "continuation without a message": 0x80} {
		s := decode(AnswerHead{Path: "/v1/realtime", Status: 101}, testLimits, append(recorded.AppendFrame(message, first, []byte("x")), message...))
		assert.Equal(t, Unparsed{Corrupt: 1}, s.Unparsed, name)
		assert.Len(t, s.Chunks, 1, name)
	}
}

func TestDecoder_BoundsWhatItKeeps(t *testing.T) {
	name := strings.Repeat("é", maxName)
	var events []string
	for i := range 2 * maxChoices {
		events = append(events, `{"object":"chat.completion.chunk","id":"`+name+`","model":"`+name+`","choices":[{"index":`+
			strings.Repeat("9", i%20+1)+`,"delta":{},"finish_reason":"`+name+`"},{"index":`+string(rune('0'+i%10))+`,"finish_reason":"stop"}],"error":{"type":"`+name+`"}}`)
	}
	s := decode(AnswerHead{Path: "/v1/chat/completions"}, testLimits, []byte(sse(events...)))
	assert.LessOrEqual(t, len(s.FinishReasons), maxChoices)
	for _, kept := range append(s.FinishReasons, s.Model, s.ResponseID, s.Error) {
		assert.LessOrEqual(t, len(kept), maxName)
		assert.NotEmpty(t, kept)
	}
}

func TestDecoder_SkipsBrokenPayloadsOfBedrock(t *testing.T) {
	headers := []byte("\x0b:event-type\x07\x00\x05chunk")
	body := slices.Concat(
		jamba(`{"generation":"a"}`),
		frame(headers, []byte(`{"bytes":"no base64"}`)),
		jamba(`{"generation":`),
		jamba(`{"generation":"b"}`),
	)
	s := decode(AnswerHead{Path: "/model/m/invoke-with-response-stream", ContentType: "application/vnd.amazon.eventstream"}, testLimits, body)
	assert.Equal(t, Unparsed{Invalid: 2}, s.Unparsed)
	assert.Len(t, s.Chunks, 2)
}

// A header of each type stands before the one that names the event.
func TestAWSFramer_ReadsHeadersOfAllTypes(t *testing.T) {
	headers := []byte("\x01a\x00" + "\x01b\x01" + "\x01c\x02_" + "\x01d\x03__" + "\x01e\x04____" + "\x01f\x05________" +
		"\x01g\x06\x00\x03___" + "\x01h\x08________" + "\x01i\x09________________" + "\x0b:event-type\x07\x00\x05chunk")
	var out found
	f := awsFramer{frame: buffer{limit: testLimits.EventBytes}}
	f.write(frame(headers, []byte("{}")), &out)
	assert.Equal(t, found{"event chunk {}"}, out)
	out = nil
	f.write(frame([]byte("\x01a\x0a"), []byte("{}")), &out)
	assert.Equal(t, found{"invalid", "event  {}"}, out)
}

func TestFramers_ReleaseTheMemoryOfALongEvent(t *testing.T) {
	var out found
	f := newSSEFramer(testLimits)
	f.write([]byte("data: "+strings.Repeat("x", 4*keptCapacity)), &out)
	f.write([]byte("\n\n"), &out)
	assert.Len(t, out, 1)
	assert.LessOrEqual(t, cap(f.line.bytes)+cap(f.data.bytes), 2*keptCapacity)
}

func TestBuffer_ReservesNoMoreThanItsLimit(t *testing.T) {
	const limit = 100_000
	b := buffer{limit: limit}
	for b.add(make([]byte, 700)) {
		assert.LessOrEqual(t, cap(b.bytes), limit)
	}
}

func TestDecoder_TakesTheErrorTypeOfTheHeader(t *testing.T) {
	for _, r := range recorded.Answers(t) {
		if r.File == "bedrock_converse/error_400_validation.json" {
			s := decode(headOf(&r), testLimits, r.Body)
			assert.Equal(t, "ValidationException", s.Error)
			return
		}
	}
	t.Fatal("no recording has x-amzn-errortype")
}

// tokenEvents are events as they arrive per token.
var tokenEvents = map[string]struct {
	x     AnswerHead
	event string
}{
	"openai_chat": {AnswerHead{Path: "/v1/chat/completions"}, sse(`{"id":"chatcmpl-CxnYzKQqBhBBhYzjsz5DErNzC3OkT","object":"chat.completion.chunk","created":1768341245,"model":"gpt-4.1-nano-2025-04-14","service_tier":"default","system_fingerprint":"fp_7f8eb7d1f9","choices":[{"index":0,"delta":{"content":" can"},"logprobs":null,"finish_reason":null}],"obfuscation":"Fqzx3Q"}`)},
	"openai_responses": {AnswerHead{Path: "/v1/responses"}, "event: response.output_text.delta\n" +
		sse(`{"type":"response.output_text.delta","sequence_number":12,"item_id":"msg_0415a3de5d3015560069e2f3f4fb188192","output_index":0,"content_index":0,"delta":" test","logprobs":[],"obfuscation":"abcdefgh"}`)},
	"anthropic_messages": {AnswerHead{Path: "/v1/messages"}, "event: content_block_delta\n" + sse(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" some text of a few tokens"}    }`)},
	"gemini":             {AnswerHead{Path: "/v1/models/m:streamGenerateContent"}, sse(`{"candidates": [{"content": {"parts": [{"text": " text"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 21,"candidatesTokenCount": 56,"totalTokenCount": 172,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 21}]},"modelVersion": "gemini-2.5-flash","responseId": "RUy4aObyJcTujrEPqtKYKQ"}`)},
	"ollama":             {AnswerHead{Path: "/api/chat", ContentType: "application/x-ndjson"}, `{"model":"gemma3:1b","created_at":"2025-08-20T13:47:54.495433Z","message":{"role":"assistant","content":","},"done":false}` + "\n"},
	"bedrock_converse": {
		AnswerHead{Path: "/model/m/converse-stream", ContentType: "application/vnd.amazon.eventstream"},
		string(frame([]byte("\x0b:event-type\x07\x00\x11contentBlockDelta\x0d:content-type\x07\x00\x10application/json"), []byte(`{"contentBlockIndex":0,"delta":{"text":" text"},"p":"abcdefghijklm"}`))),
	},
	"bedrock_invoke": {
		AnswerHead{Path: "/model/m/invoke-with-response-stream", ContentType: "application/vnd.amazon.eventstream"},
		string(frame([]byte("\x0b:event-type\x07\x00\x05chunk"), []byte(`{"bytes":"eyJnZW5lcmF0aW9uIjoiIHRleHQiLCJwcm9tcHRfdG9rZW5fY291bnQiOm51bGwsImdlbmVyYXRpb25fdG9rZW5fY291bnQiOjMsInN0b3BfcmVhc29uIjpudWxsfQ==","p":"abcd"}`))),
	},
	"openai_completions": {AnswerHead{Path: "/v1/completions"}, sse(`{"id":"cmpl-1","object":"text_completion","model":"org\/m","choices":[{"text":" \u00e9","index":0,"logprobs":null,"finish_reason":null}]}`)},
	"tgi":                {AnswerHead{Path: "/generate_stream"}, sse(`{"index":1,"token":{"id":1,"text":" a\n","logprob":-1,"special":false},"generated_text":null,"details":null}`)},
	"sglang":             {AnswerHead{Path: "/generate"}, sse(`{"text":"a","meta_info":{"id":"x","prompt_tokens":3,"completion_tokens":1,"finish_reason":null}}`, `{"text":"\u00e9`+strings.Repeat(" b", 500)+`","meta_info":{"id":"x","prompt_tokens":3,"completion_tokens":4,"finish_reason":null}}`)},
	"llamacpp":           {AnswerHead{Path: "/completion"}, sse(`{"index":0,"content":"a","tokens":[5],"stop":false,"tokens_predicted":1,"tokens_evaluated":7}`)},
	"triton":             {AnswerHead{Path: "/v2/models/m/generate_stream"}, sse(`{"model_name":"m","text_output":"a"}`)},
	"cohere":             {AnswerHead{Path: "/v2/chat"}, sse(`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}`)},
	"interactions":       {AnswerHead{Path: "/v1beta/interactions"}, sse(`{"event_type":"step.delta","index":1,"delta":{"type":"text","text":"a"}}`)},
	"watsonx":            {AnswerHead{Path: "/ml/v1/text/generation_stream"}, sse(`{"model_id":"m","results":[{"generated_text":"a","generated_token_count":2,"input_token_count":0,"stop_reason":"not_finished"}]}`)},
	"openai_realtime":    {AnswerHead{Path: "/v1/realtime", Status: 101}, string(recorded.AppendFrame(nil, 0x81, []byte(`{"type":"response.output_text.delta","event_id":"e","delta":"a"}`)))},
	"vllm":               {AnswerHead{Path: "/inference/v1/generate"}, sse(`{"request_id":"r","choices":[{"index":0,"logprobs":null,"finish_reason":null,"token_ids":[11]}],"usage":null}`)},
	"lmstudio":           {AnswerHead{Path: "/api/v1/chat"}, named(`{"type":"message.delta","content":"a"}`)},
	"workers_ai":         {AnswerHead{Path: "/client/v4/accounts/x/ai/run/@cf/meta/llama"}, sse(`{"response":"a","p":"abcdef"}`)},
	"conversations":      {AnswerHead{Path: "/v1/conversations"}, named(`{"type":"conversation.response.started","conversation_id":"c"}`, `{"type":"message.output.delta","output_index":0,"content":"a","model":"m"}`)},
	"dashscope": {AnswerHead{Path: "/api/v1/services/aigc/text-generation/generation"}, dashScopeEvents(
		`{"output":{"choices":[{"message":{"content":"a"},"finish_reason":"null"}]},"usage":{"output_tokens":1},"request_id":"r"}`, `{"output":{"choices":[{"message":{"content":"a b"},"finish_reason":"null"}]},"usage":{"output_tokens":2},"request_id":"r"}`,
	)},
	"audio_speech":         {AnswerHead{Path: "/v1/audio/speech", Asked: &RequestFacts{AudioFormat: "pcm"}}, sse(`{"type":"speech.audio.delta","audio":"` + strings.Repeat("AbC/", 2_000) + `"}`)},
	"audio_pieces":         {AnswerHead{Path: "/v1/audio/speech", ContentType: "audio/mpeg"}, strings.Repeat("\x00\xff", 1_000)},
	"audio_chat":           {AnswerHead{Path: "/v1/chat/completions", Asked: &RequestFacts{AudioFormat: "pcm16"}}, sse(`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"audio":{"data":"AAECAw=="}}}]}`)},
	"audio_gemini":         {AnswerHead{Path: "/v1/models/m:streamGenerateContent"}, sse(`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/L16;codec=pcm;rate=24000","data":"AAECAw=="}}]}}]}`)},
	"audio_realtime":       {AnswerHead{Path: "/v1/realtime", Status: 101}, string(recorded.AppendFrame(nil, 0x81, []byte(`{"type":"response.output_audio.delta","event_id":"e","delta":"`+strings.Repeat("AbC/", 2_000)+`"}`)))},
	"openai_transcription": {AnswerHead{Path: "/v1/audio/transcriptions"}, sse(`{"type":"transcript.text.delta","delta":" a"}`)},
	"replicate":            {AnswerHead{Path: "/x"}, "event: output\nid: 1:0\ndata: a\ndata: b\n\n"},
}

func BenchmarkDecoder(b *testing.B) {
	for name, c := range tokenEvents {
		b.Run(name, func(b *testing.B) {
			var chunks int
			d := newAnswerDecoder(c.x, testLimits, func(Chunk) { chunks++ })
			event := []byte(c.event)
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for b.Loop() {
				d.Write(event, 1)
			}
			require.Zero(b, chunks%b.N, "some events are two")
		})
	}
}
