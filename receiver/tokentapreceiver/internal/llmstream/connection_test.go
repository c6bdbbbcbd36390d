// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"compress/flate"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

// A call is one response of a connection, as it was reported.
type call struct {
	Start, Ended int64
	Seen         bool
	Times        []int64
	AfterGap     int // chunks
	Observation
}

func (c *call) Chunk(chunk Chunk) {
	if c.Times = append(c.Times, chunk.Time); chunk.AfterGap {
		c.AfterGap++
	}
}

func (c *call) End(o Observation, time int64) { c.Observation, c.Ended = o, time }

// connect decodes a connection and collects its responses.
func connect(x AnswerHead, limits Limits, calls *[]*call) *Connection {
	return NewConnection(x, limits, func(start int64, seen bool) Response {
		one := &call{Start: start, Seen: seen}
		*calls = append(*calls, one)
		return one
	})
}

// converse passes messages, one a second: those that begin with ">" are the client's.
// The connection ends at the second after the last. bits are added to the first byte of
// every frame, and encode, if not nil, makes its payload.
func converse(x AnswerHead, limits Limits, bits byte, encode func(client bool, text string) []byte, messages ...string) (calls []*call) {
	c := connect(x, limits, &calls)
	if encode == nil {
		encode = func(_ bool, text string) []byte { return []byte(text) }
	}
	for i, text := range messages {
		if text, client := strings.CutPrefix(text, ">"); client {
			c.WriteClient(recorded.MaskedFrame(0x81|bits, encode(true, text)), int64(i))
		} else {
			c.WriteServer(recorded.AppendFrame(nil, 0x81|bits, encode(false, text)), int64(i))
		}
	}
	c.End(int64(len(messages)))
	return calls
}

func created(id string) string {
	return `{"type":"response.created","event_id":"e","response":{"id":"` + id + `","status":"in_progress"}}`
}

func delta(id string) string {
	return `{"type":"response.output_text.delta","event_id":"e","response_id":"` + id + `","delta":"a"}`
}

func done(id string, output int) string {
	return fmt.Sprintf(`{"type":"response.done","event_id":"e","response":{"id":"%s","status":"completed","usage":{"output_tokens":%d}}}`, id, output)
}

var realtime = AnswerHead{Path: "/v1/realtime", Status: 101}

func TestConnection_StartsAResponseWithItsRequest(t *testing.T) {
	got := converse(realtime, testLimits, 0, nil,
		`{"type":"session.created","event_id":"e","session":{"model":"m"}}`,
		`>{"type":"input_audio_buffer.append","audio":"xxxx"}`,
		`>{"type":"response.create"}`, // 2
		created("r1"), delta("r1"), done("r1", 5),
		`{"type":"input_audio_buffer.committed","event_id":"e","item_id":"i"}`, // 6
		created("r2"), delta("r2"), delta("r2"), done("r2", 7), // 10
		created("r3"), delta("r3"), // nothing asked for it
	)
	require.Len(t, got, 3)
	assert.Equal(t, []int64{2, 6, 11}, []int64{got[0].Start, got[1].Start, got[2].Start})
	assert.Equal(t, []int64{5, 10, 13}, []int64{got[0].Ended, got[1].Ended, got[2].Ended})
	assert.Equal(t, []bool{true, true, false}, []bool{got[0].Seen, got[1].Seen, got[2].Seen})
	assert.Equal(t, []int64{8, 9}, got[1].Times)
	for i, want := range []struct {
		id     string
		output optional.Value[int64]
		ended  bool
	}{{"r1", optional.Of(int64(5)), true}, {"r2", optional.Of(int64(7)), true}, {"r3", optional.Value[int64]{}, false}} {
		assert.Equal(t, want.id, got[i].ResponseID)
		assert.Equal(t, "m", got[i].Model)
		assert.Equal(t, want.output, got[i].Reported.Output)
		assert.Equal(t, want.ended, got[i].Observation.Ended)
		assert.Equal(t, OpenAIRealtime, got[i].Format)
		assert.True(t, got[i].Streamed)
	}
}

// The Responses API says in the same words how a response ended, with and without a connection.
func TestResponses_CancelledAndFailed(t *testing.T) {
	for status, want := range map[string]struct {
		cancelled bool
		failure   string
	}{"completed": {}, "incomplete": {}, "cancelled": {true, ""}, "failed": {false, ErrorMessageOnly}} {
		last := `{"type":"response.` + status + `","response":{"id":"r","status":"` + status + `"}}`
		s := decode(AnswerHead{Path: "/v1/responses"}, testLimits, []byte(sse(last)))
		assert.Equal(t, want.cancelled, s.Cancelled, status)
		assert.Equal(t, want.failure, s.Error, status)
		assert.True(t, s.Ended, status)
	}
}

func TestConnection_SeparatesInterleavedResponses(t *testing.T) {
	got := converse(realtime, testLimits, 0, nil,
		`>{"type":"response.create"}`, `>{"type":"response.create"}`,
		created("a"), created("b"), delta("a"), delta("b"), delta("a"), done("b", 1), delta("a"), done("a", 3),
	)
	require.Len(t, got, 2)
	assert.Equal(t, []int64{4, 6, 8}, got[0].Times)
	assert.Equal(t, []int64{5}, got[1].Times)
	assert.Equal(t, []int64{0, 1}, []int64{got[0].Start, got[1].Start})
	assert.Equal(t, []int64{9, 7}, []int64{got[0].Ended, got[1].Ended})
	assert.Equal(t, []string{"completed"}, got[0].FinishReasons)
}

func TestConnection_ReportsARefusedRequest(t *testing.T) {
	got := converse(realtime, testLimits, 0, nil,
		`>{"type":"response.create","event_id":"mine"}`,
		`{"type":"error","event_id":"e","error":{"type":"invalid_request_error","event_id":"another"}}`,
		`{"type":"error","event_id":"e","error":{"type":"server_error","code":"c","event_id":"mine"}}`,
		`{"type":"error","event_id":"e","error":{"type":"invalid_request_error"}}`, // answers nothing
		`>{"type":"response.create"}`, // never answered
	)
	require.Len(t, got, 2)
	assert.Equal(t, "server_error", got[0].Error)
	assert.Equal(t, []int64{0, 2}, []int64{got[0].Start, got[0].Ended})
	assert.Empty(t, got[1].Error)
	assert.Equal(t, []int64{4, 5}, []int64{got[1].Start, got[1].Ended})
	assert.False(t, got[1].Observation.Ended)
}

func TestConnection_ReadsTheResponsesAPI(t *testing.T) {
	got := converse(AnswerHead{Path: "/v1/responses", Status: 101}, testLimits, 0, nil,
		`>{"type":"response.create","model":"m"}`,
		`{"type":"response.created","response":{"id":"r","model":"m","status":"in_progress"}}`,
		`{"type":"response.output_text.delta","item_id":"i","delta":"a"}`,
		`{"type":"response.completed","response":{"id":"r","model":"m","status":"completed","usage":{"input_tokens":2,"output_tokens":1}}}`,
	)
	require.Len(t, got, 1)
	assert.Equal(t, []int64{2}, got[0].Times)
	assert.Equal(t, optional.Of(int64(1)), got[0].Reported.Output)
	assert.True(t, got[0].Observation.Ended)
	assert.Equal(t, int64(3), got[0].Ended)
}

func TestConnection_ReadsTurnsOfGeminiLive(t *testing.T) {
	for _, path := range []string{"/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent", "/unknown"} {
		got := converse(AnswerHead{Path: path, Status: 101}, testLimits, 0, nil,
			`>{"setup":{"model":"models/gemini-live"}}`, `{"setupComplete":{}}`,
			`>{"clientContent":{"turns":[],"turnComplete":false}}`,
			`>{"clientContent":{"turns":[],"turnComplete":true}}`, // 3
			`{"toolCall":{"functionCalls":[{"name":"f","args":{}}]}}`,
			`>{"toolResponse":{"functionResponses":[]}}`, // 5
			`{"serverContent":{"modelTurn":{"parts":[{"text":"a"}]}}}`,
			`{"serverContent":{"turnComplete":true},"usageMetadata":{"responseTokenCount":4}}`, // 7
			`>{"realtimeInput":{"audio":{"data":"xxxx"}}}`,
			`{"serverContent":{"outputTranscription":{"text":"a"}}}`, // the server noticed a pause
			`{"serverContent":{"interrupted":true}}`, `{"serverContent":{"turnComplete":true}}`,
		)
		require.Len(t, got, 3, path)
		assert.Equal(t, []int64{3, 5, 9}, []int64{got[0].Start, got[1].Start, got[2].Start})
		assert.Equal(t, []int64{4, 7, 11}, []int64{got[0].Ended, got[1].Ended, got[2].Ended})
		assert.False(t, got[2].Seen)
		assert.Equal(t, int64(1), got[0].ByChannel[2], "a tool call")
		assert.Equal(t, optional.Of(int64(4)), got[1].Reported.Output)
		assert.Equal(t, "models/gemini-live", got[2].Model)
	}
}

// Only the model's output begins a response, unless a request waits for one.
func TestConnection_WhatTheUserSaidBeginsNoTurnOfGeminiLive(t *testing.T) {
	live := AnswerHead{Path: "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent", Status: 101}
	got := converse(live, testLimits, 0, nil,
		`{"serverContent":{"inputTranscription":{"text":"a"}}}`, `{"serverContent":{"interrupted":true}}`,
		`{"usageMetadata":{"responseTokenCount":9}}`,
		`{"serverContent":{"modelTurn":{"parts":[{"text":"a"}]}}}`, // 3
		`{"usageMetadata":{"responseTokenCount":4}}`, `{"sessionResumptionUpdate":{}}`,
		`{"serverContent":{"turnComplete":true}}`,  // 6
		`>{"clientContent":{"turnComplete":true}}`, // 7
		`{"usageMetadata":{"responseTokenCount":9}}`,
		`{"serverContent":{"turnComplete":true}}`, // an answer without output
	)
	require.Len(t, got, 2)
	assert.Equal(t, []int64{3, 7}, []int64{got[0].Start, got[1].Start})
	assert.Equal(t, []int64{6, 9}, []int64{got[0].Ended, got[1].Ended})
	assert.Equal(t, optional.Of(int64(4)), got[0].Reported.Output)
	assert.False(t, got[1].Reported.Output.Known)
	assert.Equal(t, []string{"turnComplete"}, got[0].FinishReasons)
}

// deflate compresses the messages of both sides, as a peer of RFC 7692 does.
func deflate(t *testing.T, keeps bool) func(bool, string) []byte {
	var sides [2]struct {
		out    bytes.Buffer
		writer *flate.Writer
	}
	return func(client bool, text string) []byte {
		side := &sides[0]
		if client {
			side = &sides[1]
		}
		side.out.Reset()
		if side.writer == nil {
			side.writer, _ = flate.NewWriter(&side.out, flate.BestCompression)
		} else if !keeps {
			side.writer.Reset(&side.out)
		}
		_, err := side.writer.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, side.writer.Flush())
		return bytes.Clone(bytes.TrimSuffix(side.out.Bytes(), []byte("\x00\x00\xff\xff")))
	}
}

func TestConnection_InflatesMessages(t *testing.T) {
	random := rand.New(rand.NewPCG(16, 4))
	noise := make([]byte, 50_000)
	for i := range noise {
		noise[i] = 'a' + byte(random.IntN(26))
	}
	messages := []string{
		`{"type":"session.created","event_id":"e","session":{"model":"m","instructions":"` + string(noise) + `"}}`,
		`>{"type":"response.create"}`, created("r"), delta("r"),
		`{"type":"session.updated","event_id":"e","session":{"instructions":"` + string(noise[20_000:]) + `"}}`, // from the window
		delta("r"), `>{"type":"response.create"}`, done("r", 2), created("r2"), done("r2", 3),
	}
	want := converse(realtime, testLimits, 0, nil, messages...)
	require.Len(t, want, 2)
	for parameters, keeps := range map[string]bool{"": true, "; server_no_context_takeover; client_no_context_takeover": false} {
		x := realtime
		x.Header = map[string][]string{"Sec-Websocket-Extensions": {"permessage-deflate" + parameters}}
		assert.Equal(t, want, converse(x, testLimits, bitCompressed, deflate(t, keeps), messages...), parameters)
		x.Header["Sec-Websocket-Extensions"] = []string{"x-other", "permessage-deflate" + parameters}
		assert.Equal(t, want, converse(x, testLimits, bitCompressed, deflate(t, keeps), messages...), "%s, in the second header line", parameters)
		assert.Equal(t, want, converse(x, testLimits, 0, nil, messages...), "not compressed, though agreed on")
	}
}

// A message that inflates beyond the limit is skipped. Later ones refer to it unless the
// peers agreed that they do not.
func TestConnection_SkipsADeflateBomb(t *testing.T) {
	messages := []string{created("r"), delta("r"), `{"x":"` + strings.Repeat("x", 8<<20) + `"}`, delta("r"), done("r", 2)}
	x := realtime
	x.Header = map[string][]string{"Sec-Websocket-Extensions": {"permessage-deflate"}}
	got := converse(x, testLimits, bitCompressed, deflate(t, true), messages...)
	require.Len(t, got, 1)
	assert.Equal(t, []int64{1}, got[0].Times)
	assert.Equal(t, Unparsed{TooLong: 1, Corrupt: 1}, got[0].Unparsed)
	x.Header.Set("Sec-WebSocket-Extensions", "permessage-deflate; server_no_context_takeover")
	got = converse(x, testLimits, bitCompressed, deflate(t, false), messages...)
	require.Len(t, got, 1)
	assert.Equal(t, []int64{1, 3}, got[0].Times)
	assert.Equal(t, Unparsed{TooLong: 1}, got[0].Unparsed)
	assert.True(t, got[0].Observation.Ended)
}

func TestConnection_KeepsTheStartsOfSixteenRequests(t *testing.T) {
	var calls []*call
	c := connect(realtime, testLimits, &calls)
	var unobserved int
	for i := range 20 {
		unobserved += c.WriteClient(recorded.MaskedFrame(0x81, []byte(`{"type":"response.create"}`)), int64(i))
	}
	assert.Equal(t, 4, unobserved)
	for i := range 20 {
		id := fmt.Sprint("r", i)
		c.WriteServer(recorded.AppendFrame(recorded.AppendFrame(nil, 0x81, []byte(created(id))), 0x81, []byte(done(id, 1))), int64(100+i))
	}
	require.Len(t, calls, 20)
	for i, call := range calls {
		assert.Equal(t, i < 16, call.Seen, i)
		if i < 16 {
			assert.Equal(t, int64(i), call.Start)
		}
	}
}

func TestConnection_EvictsTheOldestOfSixteenOpenResponses(t *testing.T) {
	var messages []string
	for i := range 18 {
		messages = append(messages, created(fmt.Sprint("r", i)))
	}
	messages = append(messages, delta("r0"), delta("r17"), done("r1", 1), done("r2", 1), delta("r0"), `>{"type":"response.create"}`, `{"type":"error","error":{"type":"t"}}`)
	got := converse(realtime, testLimits, 0, nil, messages...)
	require.Len(t, got, 19)
	for i, call := range got {
		assert.Equal(t, i < 2, call.Evicted, i)
	}
	assert.Equal(t, []int64{16, 17, 21}, []int64{got[0].Ended, got[1].Ended, got[2].Ended})
	assert.Equal(t, []int64{19}, got[17].Times)
	assert.Equal(t, "t", got[18].Error, "a refused request evicts no response")
}

// One side parses its messages without the lock under which requests are handed over.
func TestConnection_ReadsTheClientWithoutALock(t *testing.T) {
	c := NewConnection(realtime, testLimits, func(int64, bool) Response { return &call{} })
	c.client.mu.Lock()
	defer c.client.mu.Unlock()
	read := make(chan struct{})
	go func() {
		c.WriteClient(recorded.MaskedFrame(0x81, []byte(`{"type":"input_audio_buffer.append","audio":"`+strings.Repeat("x", 60_000)+`"}`)), 1)
		c.WriteClient(recorded.MaskedFrame(0x81, []byte(`{"type":"session.update","session":{}}`)), 1)
		close(read)
	}()
	select {
	case <-read:
	case <-time.After(30 * time.Second):
		t.Error("the client's messages wait for the lock")
	}
}

// For the race detector: the sides share only requests and the model.
func TestConnection_ReadsBothSidesAtOnce(t *testing.T) {
	const responses = 200
	var calls []*call
	c := connect(realtime, testLimits, &calls)
	var client sync.WaitGroup
	client.Go(func() {
		for range responses {
			c.WriteClient(recorded.MaskedFrame(0x81, []byte(`{"type":"response.create","setup":{"model":"m"}}`)), 1)
		}
	})
	for i := range responses {
		id := fmt.Sprint("r", i)
		c.WriteServer(recorded.AppendFrame(recorded.AppendFrame(nil, 0x81, []byte(created(id))), 0x81, []byte(done(id, 1))), 2)
	}
	client.Wait()
	require.GreaterOrEqual(t, len(calls), responses)
	for _, call := range calls[:responses] {
		assert.True(t, call.Observation.Ended)
	}
}

// After as many messages of another service as are tried, nothing is kept of either side.
func TestConnection_OfAnotherServiceIsNotBuffered(t *testing.T) {
	x := AnswerHead{Path: "/chat", Status: 101, Header: map[string][]string{"Sec-Websocket-Extensions": {"permessage-deflate"}}}
	for name, message := range map[string]string{
		"JSON": `{"a":1}`, "no JSON": "hello", "too long": strings.Repeat("x", testLimits.EventBytes+1),
	} {
		c := NewConnection(x, testLimits, func(int64, bool) Response { return &call{} })
		for range maxTries {
			c.WriteServer(recorded.AppendFrame(nil, 0x81, []byte(message)), 1)
		}
		unfinished := []byte{0x81, 127, 0, 0, 0, 0, 0, 0xf, 0, 0}
		c.WriteServer(append(unfinished, "{"...), 2)
		unfinished[1] |= bitMasked
		c.WriteClient(append(unfinished, "mask{"...), 2)
		for side, f := range map[string]*webSocketFramer{"server": &c.server, "client": &c.client.framer} {
			assert.Zero(t, cap(f.message.bytes), "%s of the %s", name, side)
			assert.Nil(t, f.inflater, "%s of the %s", name, side)
		}
		assert.False(t, c.Recognised())
	}
}

func TestConnection_ReleasesTheMemoryOfALongMessage(t *testing.T) {
	x := realtime
	x.Header = map[string][]string{"Sec-Websocket-Extensions": {"permessage-deflate"}}
	c := NewConnection(x, testLimits, func(int64, bool) Response { return &call{} })
	c.WriteServer(recorded.AppendFrame(nil, 0xc1, deflate(t, true)(false, `{"x":"`+strings.Repeat("x", 4*keptCapacity)+`"}`)), 1)
	require.Equal(t, int64(1), c.index)
	assert.LessOrEqual(t, cap(c.server.message.bytes)+cap(c.server.inflater.text.bytes), 2*keptCapacity)
}

// What could not be read of a connection without responses is not lost.
func TestConnection_ReturnsWhatBelongsToNoResponse(t *testing.T) {
	c := NewConnection(realtime, testLimits, func(int64, bool) Response { return &call{} })
	c.WriteServer(recorded.AppendFrame(recorded.AppendFrame(nil, 0x81, []byte("no JSON")), 0xc1, []byte("compressed")), 1)
	assert.Equal(t, Unparsed{Invalid: 1, Corrupt: 1}, c.End(2))
}

func TestConnection_OfAnotherServiceHasNoResponses(t *testing.T) {
	for _, unknown := range []string{`{"a":1}`, "no JSON"} {
		messages := append([]string{`>{"type":"hello"}`}, slices.Repeat([]string{unknown}, maxTries)...)
		assert.Empty(t, converse(AnswerHead{Path: "/chat", Status: 101}, testLimits, 0, nil, append(messages, created("r"))...))
		assert.NotEmpty(t, converse(AnswerHead{Path: "/chat", Status: 101}, testLimits, 0, nil, append(messages[1:maxTries], created("r"))...))
	}
}

// FuzzConnection passes any bytes of both sides: what is reported does not depend on the
// pieces in which the server's arrive.
func FuzzConnection(f *testing.F) {
	var body []byte
	for _, text := range []string{created("a"), created("b"), delta("a"), `{"type":"error"}`, done("a", 1)} {
		body = recorded.AppendFrame(body, 0x81, []byte(text))
	}
	request := recorded.MaskedFrame(0x81, []byte(`{"type":"response.create"}`))
	f.Add("/v1/realtime", "", request, body, []byte{3})
	f.Add("/v1/realtime", "permessage-deflate", request, recorded.AppendFrame(nil, 0xc1, []byte("\xabV*J-.\xc8\xcf+N\x05\x00")), []byte{0})
	f.Add("/x.BidiGenerateContent", "", recorded.MaskedFrame(0x81, []byte(`{"clientContent":{"turnComplete":true}}`)), recorded.AppendFrame(nil, 0x82, []byte(`{"toolCall":{}}`)), []byte{9})
	f.Fuzz(func(t *testing.T, path, extensions string, client, server, sizes []byte) {
		x := AnswerHead{Path: path, Status: 101, Header: map[string][]string{"Sec-Websocket-Extensions": {extensions}}}
		limits := Limits{EventBytes: 400}
		pass := func(sizes []byte) (all []*call) {
			c := connect(x, limits, &all)
			c.WriteClient(client, 1)
			pieces(server, sizes, func(p []byte) { c.WriteServer(p, 2) })
			c.End(3)
			require.LessOrEqual(t, cap(c.server.message.bytes), limits.EventBytes)
			for _, one := range all {
				require.NotZero(t, one.Ended)
			}
			return all
		}
		require.Equal(t, pass(nil), pass(sizes))
	})
}

// A message that is skipped for its length may belong to any open response, or to the next one if none is open.
func TestConnection_MarksChunksAfterAMessageThatWasSkipped(t *testing.T) {
	long := `{"type":"response.output_text.delta","response_id":"a",` + strings.Repeat(`"a":1,`, 400) + `"delta":"b"}`
	got := converse(realtime, Limits{EventBytes: 1000}, 0, nil,
		created("a"), delta("a"), created("b"), long, delta("a"), delta("b"), done("a", 3), done("b", 1),
		created("c"), delta("c"), done("c", 1), long, created("d"), delta("d"), done("d", 2), created("e"), delta("e"), done("e", 1),
	)
	require.Len(t, got, 5)
	for i, want := range []int{1, 1, 0, 1, 0} {
		assert.Equal(t, want, got[i].AfterGap, "response %d", i)
	}
}

func TestConnection_ReadsAroundLongStrings(t *testing.T) {
	image := `{"type":"response.image_generation_call.partial_image","response_id":"a","partial_image_b64":"` + strings.Repeat("A", 5000) + `"}`
	finished := strings.Replace(done("a", 3), `"status"`, `"output":[{"result":"`+strings.Repeat("A", 5000)+`"}],"status"`, 1)
	got := converse(realtime, Limits{EventBytes: 1000}, 0, nil, created("a"), image, delta("a"), finished)
	require.Len(t, got, 1)
	assert.Equal(t, []int64{2}, got[0].Times)
	assert.Zero(t, got[0].AfterGap)
	assert.Equal(t, optional.Of[int64](3), got[0].Reported.Output)
	assert.Equal(t, Unparsed{}, got[0].Unparsed)
}
