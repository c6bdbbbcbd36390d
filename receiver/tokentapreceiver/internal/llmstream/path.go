// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"cmp"
	"net/url"
	"strings"
)

// pathRule recognises the request paths of a format. Gateways add prefixes, so the end of the
// path decides.
type pathRule struct {
	suffix string // "/" for the root path alone
	within string // which the path has, too, at any place
	// operation is the value of gen_ai.operation.name. It is chat if empty.
	operation string
	output    string // the value of gen_ai.output.type, if all answers have it
	// model returns the model that the path or the query names. It may be nil.
	model   func(path, rawQuery string) string
	streams bool // the request streams unless its body says otherwise
	unary   bool // the answer is one document, whatever the body says
	replays bool // the answer was generated before; the query says whether it is streamed
	shared  bool // answers of other formats and of other services have this path, too
	none    bool // no generation is asked for
	slow    bool // the service may work for long without output
}

// The names of operations in OpenTelemetry's conventions.
const (
	operationChat       = "chat"
	operationCompletion = "text_completion"
	operationGenerate   = "generate_content"
)

// outputSpeech is a value of gen_ai.output.type.
const outputSpeech = "speech"

// pathInfo is what a request's path says.
type pathInfo struct {
	pathRule
	format  *answerFormat
	modelID string // if the path names it
}

// pathFacts reads the path.
func pathFacts(path, rawQuery string) pathInfo {
	if path = strings.TrimRight(path, "/"); path == "" {
		path = "/"
	}
	for _, suffix := range noRequests {
		if strings.HasSuffix(path, suffix) {
			return pathInfo{pathRule: pathRule{suffix: suffix, none: true}, format: noFormat}
		}
	}
	for _, f := range formats {
		for _, rule := range f.paths {
			if !strings.HasSuffix(path, rule.suffix) || !strings.Contains(path, rule.within) {
				continue
			}
			i := pathInfo{pathRule: rule, format: f}
			i.operation = cmp.Or(rule.operation, operationChat)
			if rule.model != nil {
				i.modelID = rule.model(path, rawQuery)
			}
			if rule.replays {
				if strings.Contains(path[strings.LastIndex(path, rule.within)+len(rule.within):], "/") {
					return pathInfo{pathRule: pathRule{within: rule.within, none: true}, format: noFormat}
				}
				i.streams = queryValue(rawQuery, "stream") == "true"
			}
			return i
		}
	}
	return pathInfo{format: noFormat}
}

// noRequests are the ends of paths below those of formats that ask for no generation: they count tokens, cancel,
// compact or list.
var noRequests = []string{"/count_tokens", ":countTokens", "/count-tokens", "/count-tokens:rawPredict", "/input_tokens", "/input_items", "/cancel", "/compact"}

func queryValue(rawQuery, name string) string {
	values, _ := url.ParseQuery(rawQuery)
	return values.Get(name)
}

// deployment returns the model of Azure's paths.
func deployment(path, _ string) string { return segmentAfter(path, "/deployments/") }

// modelWithVerb returns the model of Google's paths, such as /models/m:generateContent.
func modelWithVerb(path, _ string) string {
	path = path[:strings.LastIndexByte(path, ':')]
	return unescape(path[strings.LastIndexByte(path, '/')+1:])
}

// segmentAfter returns the path's segment after the last occurrence of mark.
func segmentAfter(path, mark string) string {
	at := strings.LastIndex(path, mark)
	if at < 0 {
		return ""
	}
	segment, _, _ := strings.Cut(path[at+len(mark):], "/")
	return unescape(segment)
}

// bedrockModel returns what stands between /model/ and the last segment: an ID, or an
// ARN, which may have slashes of its own.
func bedrockModel(path, _ string) string {
	at := strings.Index(path, "/model/")
	end := strings.LastIndexByte(path, '/')
	if at < 0 || end < at+len("/model/") {
		return ""
	}
	return unescape(path[at+len("/model/") : end])
}

func unescape(segment string) string {
	if name, err := url.PathUnescape(segment); err == nil {
		segment = name
	}
	return cut([]byte(segment))
}
