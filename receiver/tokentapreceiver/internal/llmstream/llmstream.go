// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package llmstream reads the answers of LLM services as they pass: bytes in,
// observations out. The token_tap receiver feeds it with a copy of what it forwards.
// A Decoder reads the body of one answer, and a Connection both directions of a WebSocket
// connection, which has many responses. RequestOf reads a request.
//
// A framer cuts the body into events (SSE, JSON lines, JSON array, AWS event stream,
// WebSocket messages), holding at most Limits.EventBytes. One reader per format turns
// an event into facts: the token-bearing channels, token counts, model, usage, finish
// reasons, errors, server timings. The format is recognised from the request's path,
// the content type, the first bytes and the first JSON objects. Text is held until its
// event is read and never reported: chunks and observations have no field for it.
package llmstream

import (
	"math/bits"
	"net/http"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// AnswerHead describes the target of a request and the head of its answer.
type AnswerHead struct {
	Path, RawQuery string
	// Asked is what the request says, as far as it is known when an answer begins with audio. It may be nil.
	Asked *RequestFacts
	// Status, ContentType and Header are those of the answer. Header is read once.
	Status      int
	ContentType string
	Header      http.Header
}

// Channels is a set of the channels that a chunk carries tokens of.
type Channels uint8

// The channels of an answer.
const (
	Content Channels = 1 << iota
	Reasoning
	ToolCall
	Refusal
	// Audio has no tokens: only its times count.
	Audio
	numChannels = iota
)

// Chunk is a part of the answer that carries tokens or audio.
type Chunk struct {
	// Time is when the read that completed the chunk's event returned, in Unix nanoseconds.
	Time int64
	// Index counts all events of the answer from 0, with and without tokens.
	Index    int64
	Channels Channels
	// Tokens is at least 1, and a lower bound unless Counted is set. It is 0 if Channels is Audio alone.
	Tokens  int64
	Counted bool
	// AfterGap is set if an event before the chunk was skipped as too long: that may have carried
	// tokens, so the chunk may not be the first or the next one.
	AfterGap bool
}

// Observation is what an answer reported.
type Observation struct {
	// Format is empty if the answer was not recognised as an LLM's.
	Format Format
	// Guessed means that the format is that of the path alone, which other services have, too.
	Guessed bool
	// Streamed is false for an answer that came as one JSON document: its chunk is the
	// whole answer and has no token times.
	Streamed bool
	// Replayed is set for a response that was generated before and is read again: its
	// chunks have no token times either.
	Replayed bool
	// Model, ResponseID and Error are empty if not reported. Error is the error's type,
	// code or status, or ErrorMessageOnly.
	Model, ResponseID, Error string
	// FinishReasons holds one reason per choice, in the order of the choices.
	FinishReasons []string
	// Reported is the usage in the provider's meaning; Usage normalises it.
	Reported Usage
	// UsageFinal is false if only a seed or a running total was reported.
	UsageFinal bool
	Timings    Timings
	// AcceptedTokens and DraftTokens are counts of speculative decoding.
	AcceptedTokens, DraftTokens optional.Value[int64]

	// Events counts all events, TokenChunks those with tokens. ByChannel has the events of each channel
	// (index: bit of Channels). Tokens is the sum over the chunks.
	Events, TokenChunks, Tokens int64
	ByChannel                   [numChannels]int64
	// AudioDuration is the length of the audio, unless a part has a format or a size that is unknown.
	AudioDuration optional.Value[time.Duration]
	// Counted means that the provider reported the token count of every chunk.
	Counted bool
	// Ended means that the format's last event arrived. It is false for an answer that
	// was cut or cancelled.
	Ended bool
	// Cancelled means that the last event of OpenAI's Responses or Realtime API says so: the
	// client cancelled the response, or the user interrupted it.
	Cancelled bool
	// Interrupted means that a response over a connection was cancelled because the user began to speak.
	Interrupted bool
	// Unframed is set for a body of bytes or text alone, whose format has no end: it ends where the body does.
	Unframed bool
	// OtherOutput means that the answer holds output that is neither text nor audio, such as an image or a tool call. It is
	// looked for until the first token or audio.
	OtherOutput bool
	// Pending means that the answer says only that the response is queued or under way.
	Pending bool
	// Foreign means that the answer is not empty, and that nothing in it is of its format. It may be a web page.
	Foreign bool
	// Evicted is set for a response of a connection that gave way to a newer one, because
	// too many were open.
	Evicted bool
	// Unparsed counts the parts that were skipped, by reason.
	Unparsed Unparsed

	// seed means that the reported output is a guess made before the first token.
	seed bool
}

// ChunksOf returns the number of chunks of a channel.
func (o *Observation) ChunksOf(channel Channels) int64 {
	return o.ByChannel[bits.TrailingZeros8(uint8(channel))]
}

// saysNothing reports whether no part of the answer was understood.
func (o *Observation) saysNothing() bool {
	return o.Model == "" && o.ResponseID == "" && o.Error == "" && o.Reported == Usage{} && len(o.FinishReasons) == 0 && o.TokenChunks == 0 && o.ChunksOf(Audio) == 0 && !o.OtherOutput
}

// ErrorMessageOnly is the Error of an answer whose error has neither type nor code.
const ErrorMessageOnly = "message_only"

// Timings are the durations that the service measured itself.
type Timings struct {
	// Queue, Prefill and Decode are phases of the request in the engine.
	Queue, Prefill, Decode optional.Value[time.Duration]
	// FirstToken is the time to first token and Total the duration of the request, both
	// as measured in the service.
	FirstToken, Total optional.Value[time.Duration]
}

// Unparsed counts the parts of an answer that could not be read.
type Unparsed struct {
	// TooLong counts events above Limits.EventBytes without what jsonBuffer leaves out; Invalid counts events that are not
	// JSON; Corrupt counts breaks of the framing after which nothing more was read.
	TooLong, Invalid, Corrupt int64
	// Tail is set if the answer ended inside an event.
	Tail bool
}

// Any reports whether any part was unreadable. An incomplete tail does not count: it
// says that the answer was cut.
func (u Unparsed) Any() bool { return u.TooLong+u.Invalid+u.Corrupt > 0 }
