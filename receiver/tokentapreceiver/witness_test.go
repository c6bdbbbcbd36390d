// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

const (
	functionTool   = `{"type":"function","function":{"name":"f"}}`
	reasoningEvent = `data: {"id":"r1","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":{"reasoning_content":"so"}}]}` + "\n\n"
	callEvent      = `data: {"id":"r1","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n"
	geminiPath     = "/v1beta/models/m:streamGenerateContent"
)

// streamed is the body of a request for a stream with further members.
func streamed(members string) string { return `{"model":"m","stream":true,` + members + `}` }

// An hour of silence of these shows nothing. Beside it, the silence of another stream still does.
func TestWitness_StreamsThatMayBeSilentAreNone(t *testing.T) {
	for name, c := range map[string]struct{ path, body, answer string }{
		"not streamed":                      {chatPath, `{"model":"m"}`, ""},
		"stream off":                        {chatPath, `{"model":"m","stream":false}`, ""},
		"a request that was copied in part": {chatPath, streamed(`"messages":"` + strings.Repeat("x", maxRequestCopy) + `"`), ""},
		"a response with hidden reasoning":  {"/v1/responses", streamed(`"input":"a"`), ""},
		"a response after its text":         {"/v1/responses", streamed(`"input":"a"`), "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n"},
		"reasoning by effort":               {chatPath, streamed(`"reasoning_effort":"high"`), ""},
		"reasoning after the role":          {chatPath, streamed(`"reasoning":{"exclude":true}`), roleEvent},
		"a model that reasons unasked":      {chatPath, `{"model":"openai/o3-mini","stream":true}`, roleEvent},
		"thinking that is omitted": {
			"/v1/messages", `{"model":"m","stream":true,"thinking":{"type":"enabled","display":"omitted"}}`,
			"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n",
		},
		"thinking that is summed up": {
			"/v1/messages", `{"model":"claude-5","stream":true,"thinking":{"type":"enabled"}}`,
			"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"so\"}}\n\n",
		},
		"Gemini":                      {geminiPath, `{"contents":[]}`, ""},
		"Gemini's thoughts":           {geminiPath, `{"contents":[]}`, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"so\",\"thought\":true}]}}]}\n\n"},
		"a search":                    {chatPath, streamed(`"tools":[{"type":"web_search"}]`), tokenEvent},
		"a search by option":          {chatPath, streamed(`"web_search_options":{}`), tokenEvent},
		"a code interpreter":          {chatPath, streamed(`"tools":[{"type":"code_interpreter"}]`), tokenEvent},
		"an MCP server":               {"/v1/messages", streamed(`"mcp_servers":[{"url":"u"}]`), ""},
		"a server tool of Anthropic":  {"/v1/messages", streamed(`"tools":[{"type":"web_search_20250305","name":"web_search"}]`), ""},
		"a held call after the role":  {chatPath, streamed(`"tools":[` + functionTool + `]`), roleEvent},
		"a held call after text":      {chatPath, streamed(`"tools":[` + functionTool + `]`), tokenEvent},
		"speech":                      {chatPath, streamed(`"modalities":["text","audio"],"audio":{"voice":"v"}`), ""},
		"images":                      {geminiPath, `{"generationConfig":{"responseModalities":["TEXT","IMAGE"]}}`, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n"},
		"beam search":                 {"/v1/completions", streamed(`"use_beam_search":true`), ""},
		"a cache that is warmed":      {"/v1/messages", streamed(`"max_tokens":0`), ""},
		"an answer that has finished": {chatPath, chatRequest, tokenEvent + finishEvent},
		"an answer with an error":     {chatPath, chatRequest, tokenEvent + "data: {\"error\":{\"type\":\"overloaded\"}}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startScripted(t)
			s.produce()
			s.open(c.path, c.body)
			if c.answer != "" {
				s.say <- c.answer
			}
			require.Eventually(t, func() bool { return s.after(0).Silent == 1 }, time.Minute, time.Millisecond)
			s.requireVerdict(time.Hour, liveness.Unknown, liveness.NoWitness)
			s.open(chatPath, chatRequest)
			s.requireVerdict(2*time.Hour, liveness.Stuck, liveness.NoToken)
		})
	}
}

func TestWitness_StreamsThatShowAllTokensAreOnes(t *testing.T) {
	for name, c := range map[string]struct{ path, body, answer string }{
		"a prompt":                   {chatPath, chatRequest, ""},
		"after the role":             {chatPath, chatRequest, roleEvent},
		"an answer":                  {chatPath, chatRequest, tokenEvent},
		"an answer unasked for":      {chatPath, `{"model":"m"}`, tokenEvent},
		"a prompt with tools":        {chatPath, streamed(`"tools":[` + functionTool + `]`), ""},
		"tools that may not be used": {chatPath, streamed(`"tools":[` + functionTool + `],"tool_choice":"none"`), tokenEvent},
		"reasoning that is shown":    {chatPath, streamed(`"reasoning_effort":"high"`), reasoningEvent},
		"reasoning that is over":     {"/v1/messages", streamed(`"thinking":{"type":"enabled"}`), "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n"},
		"a hidden reasoner's answer": {chatPath, `{"model":"o3","stream":true}`, tokenEvent},
		"Gemini's answer":            {geminiPath, `{"contents":[]}`, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n"},
		"completions":                {"/v1/completions", `{"model":"m","stream":true}`, ""},
		"Ollama's":                   {"/api/chat", `{"model":"m","messages":[]}`, ""},
		"one of an unknown path":     {"/ai/run/m", `{"stream":true}`, tokenEvent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startScripted(t)
			s.receiver.routes[0].answered.Store("/api/chat", llmstream.Format("ollama"))
			s.produce()
			s.send(c.path, c.body) // of an unknown path, only the answer shows that it is one to a model
			switch c.answer {
			case "":
			case roleEvent:
				s.say <- c.answer
			default:
				s.hear(c.answer)
			}
			require.Eventually(t, func() bool { v := s.after(0); return v.Waiting+v.Decoding == 1 }, time.Minute, time.Millisecond)
			s.requireVerdict(time.Hour, liveness.Stuck, liveness.NoToken)
		})
	}
}

// Services that anybody can use are no engines of which one could be stuck.
func TestWitness_HostedServicesMayReasonUnasked(t *testing.T) {
	for host, want := range map[string]bool{"api.openai.com": false, "me.openai.azure.com": false, "api.x.ai": false, "gpu-7.example": true} {
		x := start(t, answerChat, withLiveness).begin(http.MethodPost, chatPath)
		x.decoding.route = &route{endpoint: &url.URL{Scheme: "https", Host: host}}
		x.decoding.asked.facts.Stream = true
		require.Equal(t, want, x.decoding.isWitness(&llmstream.Observation{}), host)
		answers := llmstream.Observation{TokenChunks: 1, ByChannel: [5]int64{1}}
		require.True(t, x.decoding.isWitness(&answers), host)
		x.decoding.route = x.receiver.routes[0]
	}
}

// Once a call came whole, the silence before an answer may be that of a call.
func TestWitness_AnUpstreamThatHoldsCallsIsRemembered(t *testing.T) {
	s := startScripted(t)
	s.produce()
	withTools := streamed(`"tools":[` + functionTool + `]`)
	s.open(chatPath, withTools)
	require.Equal(t, 1, s.after(0).Waiting)
	s.hear(callEvent)
	s.say <- finishEvent + doneEvent
	s.say <- ""
	require.Eventually(t, func() bool { return s.after(0).State == liveness.Idle }, time.Minute, time.Millisecond)
	s.open(chatPath, withTools)
	s.requireVerdict(time.Hour, liveness.Unknown, liveness.NoWitness)
	s.open(chatPath, chatRequest)
	s.requireVerdict(2*time.Hour, liveness.Stuck, liveness.NoToken)
}

// Something between the tap and the engine collects answers, as long as they come whole.
func TestWitness_AnUpstreamThatHoldsAnswersIsRemembered(t *testing.T) {
	s := startScripted(t)
	s.produce()
	s.open(chatPath, chatRequest)
	require.Equal(t, 1, s.after(0).Waiting)
	s.say <- `{"id":"r1","object":"chat.completion","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}`
	s.say <- ""
	require.Eventually(t, func() bool { return s.after(0).State == liveness.Idle }, time.Minute, time.Millisecond)
	s.open(chatPath, chatRequest)
	s.requireVerdict(time.Hour, liveness.Unknown, liveness.NoWitness)
	s.answer()
	require.Eventually(t, func() bool { return !s.receiver.routes[0].habits.holdsAnswers.Load() }, time.Minute, time.Millisecond)
	s.open(chatPath, chatRequest)
	s.requireVerdict(2*time.Hour, liveness.Stuck, liveness.NoToken)
}

// While tokens cannot be seen, the silence of other streams shows nothing.
func TestWitness_TokensThatCannotBeSeenMayBeThere(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		answer string
	}{
		"a content encoding": {nil, unknownEncoding},
		"the memory":         {func(cfg *Config) { cfg.MaxMemoryMiB, cfg.MaxEventBytes = 1, 4<<20 }, "data: " + strings.Repeat("x", 2<<20)},
		"the duration":       {func(cfg *Config) { cfg.MaxStreamDuration = 200 * time.Millisecond }, ""},
		"too many streams":   {func(cfg *Config) { cfg.MaxStreams = 1 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := func(*Config) {}
			if c.change != nil {
				change = c.change
			}
			s := startScripted(t, change)
			s.produce()
			s.open(chatPath, chatRequest)
			if c.answer != "" {
				s.say <- c.answer
			}
			require.Eventually(t, func() bool {
				return s.after(0).Untracked == 1 || name == "too many streams"
			}, time.Minute, time.Millisecond)
			s.open(chatPath, chatRequest)
			s.requireVerdict(time.Hour, liveness.Unknown, liveness.TooMany)
		})
	}
}

// The tap reads no further than its client.
func TestWitness_AClientThatDoesNotReadIsNotTheEngine(t *testing.T) {
	s := startScripted(t)
	s.produce()
	connection := s.dial()
	_, err := io.WriteString(connection, "POST "+chatPath+" HTTP/1.1\r\nHost: h\r\nContent-Length: 45\r\n\r\n"+chatRequest)
	require.NoError(t, err)
	<-s.asked
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		for range 1000 { // more than the buffers of sockets hold
			select {
			case s.say <- strings.Repeat(tokenEvent, 100):
			case <-time.After(5 * time.Second):
				return
			}
		}
	}()
	require.Eventually(t, func() bool { return s.after(0).Silent == 1 }, time.Minute, time.Millisecond)
	s.requireVerdict(time.Hour, liveness.Unknown, liveness.NoWitness)
	go func() { _, _ = io.Copy(io.Discard, connection) }()
	require.Eventually(t, func() bool { return s.after(0).Decoding == 1 }, time.Minute, time.Millisecond)
	<-blocked
}
