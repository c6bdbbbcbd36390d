// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"io"
	"mime/multipart"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// RequestFacts is what a request says about itself.
type RequestFacts struct {
	// Model is empty if only the answer names it.
	Model string
	// Stream is set if the request announces a stream.
	Stream bool
	// Operation is the value of gen_ai.operation.name, and Output that of gen_ai.output.type, or empty.
	Operation, Output string
	// AudioFormat is the format of audio in the answer, such as pcm16, or empty.
	AudioFormat string
	// Format is what the path stands for. It is empty if other services use the path, too.
	Format Format
	// SharedPath is the end of a path that other services use, too, and Fits says that the body has the members of a format
	// with that path.
	SharedPath string
	Fits       bool
	// Replayed is set for a request that reads an earlier response again.
	Replayed bool
	// NoRequest is set for a request that asks for no generation: it counts tokens, cancels or lists.
	NoRequest bool
	// Background is set for a request whose answer goes on without its client, which reads it later.
	Background bool
	// NoTokens is set for a request that asks for an answer without tokens, such as one that warms a cache.
	NoTokens bool
	Pauses   Pauses
}

// RequestOf reads a request. The body may be cut: what was read of it counts.
func RequestOf(path, rawQuery string, body []byte) RequestFacts {
	i := pathFacts(path, rawQuery)
	f := RequestFacts{Model: i.modelID, Operation: i.operation, Output: i.output, Format: i.format.name, Replayed: i.replays, NoRequest: i.none}
	b := requestBody(body)
	if bytes.HasPrefix(body, []byte("--")) {
		b = requestForm(body)
	}
	if i.shared {
		f.Format, f.SharedPath = "", i.suffix+i.within
		f.Fits = i.format.asks != nil && i.format.asks(func(name string) bool { return slices.Contains(b.members, name) })
	}
	if f.Model == "" {
		f.Model = b.model
	}
	if i.streams {
		f.Stream = !b.stream.isFalse()
	} else {
		f.Stream = b.stream.isTrue() && !i.unary
	}
	f.NoTokens, f.Background, f.Pauses, f.AudioFormat = b.noTokens, b.background, b.pauses, b.audioFormat
	f.Pauses.Long = f.Pauses.Long || i.slow
	return f
}

// bodyFacts are what the body of a request says.
type bodyFacts struct {
	model  string
	stream value
	// audioFormat is response_format, or the format of audio.
	audioFormat string
	noTokens    bool
	// background is the member of that name.
	background bool
	members    []string // those of formatMembers
	pauses     Pauses
}

// formatMembers are the members by which answerFormat.asks knows a format.
var formatMembers = map[string]bool{
	"input": true, "input_ids": true, "input_prefix": true, "inputs": true, "max_tokens": true, "message": true,
	"messages": true, "model": true, "prompt": true, "sampling_params": true,
}

// requestBody reads a JSON object that may be cut. Triton's stream is a member of parameters.
func requestBody(body []byte) (b bodyFacts) {
	if len(body) == 0 { // not yet
		return b
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(body), lenient...)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return b
	}
	for {
		t, err := d.ReadToken()
		if err != nil || t.Kind() != '"' {
			return b
		}
		name := t.String()
		if formatMembers[name] {
			b.members = append(b.members, name)
		}
		pauses := pauseMembers[name]
		switch name {
		case "model", "model_id", "stream", "stream_format", "response_format", "parameters", "generate", "background", "max_tokens", "max_output_tokens", "max_completion_tokens", "max_new_tokens", "n_predict":
		default:
			if pauses != nil {
				break
			}
			if d.SkipValue() != nil {
				return b
			}
			continue
		}
		raw, err := d.ReadValue()
		if err != nil {
			return b
		}
		if pauses != nil {
			pauses(&b.pauses, value(raw))
		}
		switch v := value(raw); name {
		case "stream":
			b.stream = v.clone()
		case "stream_format": // of speech
			if v.is("sse") {
				b.stream = value("true")
			}
		case "response_format": // an object asks for JSON
			if v.isString() {
				b.audioFormat = v.name()
			}
		case "audio":
			b.audioFormat = v.get("format").name()
		case "parameters":
			if inner := v.get("stream"); inner != nil {
				b.stream = inner.clone()
			}
		case "background":
			b.background = v.isTrue()
		case "generate":
			b.noTokens = b.noTokens || v.isFalse()
		case "model", "model_id":
			if v.isString() {
				b.model = v.name()
			}
		case "max_tokens", "max_output_tokens", "max_completion_tokens", "max_new_tokens", "n_predict":
			b.noTokens = b.noTokens || string(v) == "0"
		}
	}
}

// requestForm reads a form of type multipart/form-data that may be cut, which asks for the transcription of a file. Fields behind
// a file that was cut are unknown.
func requestForm(body []byte) (b bodyFacts) {
	line, _, _ := bytes.Cut(body[:min(len(body), maxName)], []byte("\r\n"))
	form := multipart.NewReader(bytes.NewReader(body), string(line[len("--"):]))
	for range maxFields {
		part, err := form.NextPart()
		if err != nil {
			break
		}
		field := part.FormName()
		if field != "model" && field != "stream" {
			continue
		}
		text, _ := io.ReadAll(io.LimitReader(part, maxName))
		switch {
		case field == "model":
			b.model = cut(text)
		case strings.EqualFold(string(text), "true"):
			b.stream = value("true")
		}
	}
	return b
}

// maxFields bounds the fields of a form that are read.
const maxFields = 64

func (v value) clone() value { return value(bytes.Clone(v)) }
