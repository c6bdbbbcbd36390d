// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"slices"
)

// Format is the name of the format of an answer. Servers that speak OpenAI's formats, such as
// Azure OpenAI, vLLM, Mistral and llama.cpp's chat, are of those formats.
type Format string

// answerFormat describes a format: all that the rest of the package knows of it. The file of
// a format declares it, and formats lists it.
type answerFormat struct {
	name Format
	// provider is the gen_ai.provider.name on a host that is not well known. Without one, it
	// is the name of the format. The conventions call all that speaks OpenAI's formats openai.
	provider string
	paths    []pathRule
	// asks reports whether the members of a request's body are those of the format. It gets those of formatMembers, and is
	// nil for formats without shared paths.
	asks func(has func(name string) bool) bool

	// marks are the members of an object that no other format has, with what their values
	// have to be.
	marks map[string]func(value) bool
	// shape decides by several members of an answer's first object, and guess does so if no
	// shape fits. Both may be nil. They get the members that are listed in hints.
	shape, guess func(firstObject) bool
	hints        []string

	// newReader returns the reader of one answer.
	newReader func() eventReader
	// plainText reports whether an event shows the format, whose data is not JSON. It is nil
	// for the others.
	plainText func(event) bool
	// connection is nil for a format that does not come over WebSocket.
	connection *connectionFormat

	// unframed reports whether answers of a media type in lower case have no events, but bytes or text, and newPieces returns a
	// reader of such a body. Both are nil for most formats.
	unframed  func(mediaType []byte) bool
	newPieces func() pieceReader

	// finishEnds is set if a finish reason ends an answer: not all servers of the format send
	// an end marker.
	finishEnds bool
	// arrayStreams is set if an array holds the chunks of a stream. The elements of others
	// are whole choices.
	arrayStreams bool
	// wraps is set if the events hold those of other formats.
	wraps bool
	// modelOf returns the model that the path names, if neither request nor answer does. It may be nil.
	modelOf func(path string) string
	// normalise brings token counts into OpenTelemetry's meaning. It is nil for those that
	// count like OpenAI.
	normalise func(*Observation, *Usage)
}

// An eventReader turns an event's JSON into facts.
type eventReader func(e event, v value, r *record)

// stateless returns an answerFormat.newReader of a reader that keeps nothing between events.
func stateless(read eventReader) func() eventReader {
	return func() eventReader { return read }
}

// formats has every format. Of several that a path or an object may be of, the first counts.
var formats []*answerFormat

// noFormat stands for a format that is not known.
var noFormat = &answerFormat{}

// notLLM is known not to be an answer of an LLM: it is JSON-RPC, such as that of MCP.
var notLLM = &answerFormat{marks: map[string]func(value) bool{"jsonrpc": anyValue}}

var (
	formatNames = map[Format]*answerFormat{}
	formatMarks = map[string]*answerFormat{"jsonrpc": notLLM}
	formatHints = map[string]bool{}
)

// An initialiser breaks a cycle: the reader of a format that wraps others looks for them.
func init() {
	formats = []*answerFormat{
		openAIChat,
		openAICompletions,
		openAIResponses,
		openAIRealtime,
		openAISpeech,
		openAITranscription,
		anthropicMessages,
		gemini,
		geminiInteractions,
		geminiLive,
		bedrockConverse,
		bedrockInvoke,
		lmStudio,
		cohere,
		mistralConversations,
		dashScope,
		workersAI,
		ollama,
		llamaCpp,
		triton,
		vLLM,
		tgi,
		sgLang,
		watsonx,
		replicate,
	}
	for _, f := range formats {
		formatNames[f.name] = f
		for mark := range f.marks {
			formatMarks[mark] = f
		}
		for _, hint := range f.hints {
			formatHints[hint] = true
		}
	}
}

// IsStored reports whether the service keeps responses of the format, which can be read later and again.
func (f Format) IsStored() bool {
	return slices.ContainsFunc(formatNamed(f).paths, func(rule pathRule) bool { return rule.replays })
}

// formatNamed returns the format with the name, or noFormat.
func formatNamed(name Format) *answerFormat {
	if f, ok := formatNames[name]; ok {
		return f
	}
	return noFormat
}

// Provider returns the gen_ai.provider.name of the format's service.
func (f Format) Provider() string {
	if provider := formatNamed(f).provider; provider != "" {
		return provider
	}
	return string(f)
}

// firstObject holds what the first JSON object of an answer shows of its format.
type firstObject struct {
	event   event
	hints   map[string]value
	members int
}

func (o firstObject) text(hint string) []byte { return o.hints[hint].raw() }

func (o firstObject) begins(hint, with string) bool {
	return bytes.HasPrefix(o.text(hint), []byte(with))
}

// onlyHas reports whether the object has no members but those named, which are hints.
func (o firstObject) onlyHas(names ...string) bool {
	known := 0
	for _, name := range names {
		if o.hints[name] != nil {
			known++
		}
	}
	return known == o.members
}

// formatOf recognises a format by its first JSON object. It returns noFormat if the object
// may be of several.
func formatOf(e event, v value) *answerFormat {
	first := firstObject{event: e, hints: map[string]value{}}
	for name, m := range v.members {
		first.members++
		if f := formatMarks[string(name)]; f != nil && f.marks[string(name)](m) {
			return f
		}
		if formatHints[string(name)] {
			first.hints[string(name)] = m
		}
	}
	for _, f := range formats {
		if f.shape != nil && f.shape(first) {
			return f
		}
	}
	for _, f := range formats {
		if f.guess != nil && f.guess(first) {
			return f
		}
	}
	return noFormat
}

// anyValue is the test of a mark that only has to exist.
func anyValue(value) bool { return true }
