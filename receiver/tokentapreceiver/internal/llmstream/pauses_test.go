// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPauses_AreWhatRequestsAskFor(t *testing.T) {
	const function = `{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`
	for body, want := range map[string]string{
		`"messages":[{"content":"tools"}]`:                                   "",
		`"tools":[]`:                                                         "",
		`"tools":null`:                                                       "",
		`"tools":[` + function + `]`:                                         "calls",
		`"functions":[{"name":"f"}]`:                                         "calls",
		`"tools":[{"name":"f","input_schema":{}}]`:                           "calls",
		`"tools":[{"type":"custom","name":"f"}]`:                             "calls",
		`"tools":[{"functionDeclarations":[{"name":"f"}]}]`:                  "calls",
		`"toolConfig":{"tools":[{"toolSpec":{"name":"f"}}]}`:                 "calls",
		`"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}`:             "",
		`"tools":[` + function + `],"tool_choice":"none"`:                    "",
		`"tool_choice":{"type":"none"},"tools":[` + function + `]`:           "",
		`"tools":[` + function + `],"tool_choice":"auto"`:                    "calls",
		`"tools":[` + function + `,{"type":"web_search"}]`:                   "calls long",
		`"tools":[{"name":"web_search","type":"web_search_20250305"}]`:       "calls long",
		`"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`:  "calls long",
		`"tools":[{"type":"mcp","server_url":"u"}]`:                          "calls long",
		`"tools":[{"google_search":{}}]`:                                     "calls long",
		`"tools":[{"type":"image_generation"}]`:                              "calls long",
		`"mcp_servers":[{"url":"u"}]`:                                        "long",
		`"web_search_options":{}`:                                            "long",
		`"modalities":["text","audio"]`:                                      "long",
		`"modalities":["text"]`:                                              "",
		`"generationConfig":{"responseModalities":["TEXT","IMAGE"]}`:         "long",
		`"generationConfig":{"responseModalities":["TEXT"],"temperature":1}`: "",
		`"best_of":1`:                                       "",
		`"best_of":10`:                                      "long",
		`"use_beam_search":true`:                            "long",
		`"use_beam_search":false`:                           "",
		`"reasoning_effort":"high"`:                         "reasons",
		`"reasoning_effort":"none"`:                         "",
		`"reasoning":{"summary":"auto"}`:                    "reasons",
		`"thinking":{"type":"enabled","display":"omitted"}`: "reasons",
		`"thinking":{"type":"disabled"}`:                    "",
		`"include_reasoning":false`:                         "reasons",
		`"thinking":{"type":"enabled"},"tools":[` + function + `],"plugins":[{"id":"web"}]`: "calls reasons long",
	} {
		pauses := RequestOf("/v1/chat/completions", "", []byte(`{`+body+`,"stream":true}`)).Pauses
		var got []string
		if pauses.MayCall() {
			got = append(got, "calls")
		}
		if pauses.Reasoning {
			got = append(got, "reasons")
		}
		if pauses.Long {
			got = append(got, "long")
		}
		assert.Equal(t, want, strings.Join(got, " "), body)
	}
}

// The schemas of an agent's tools are most of many requests.
func BenchmarkRequestOf_Tools(b *testing.B) {
	tool := `{"type":"function","function":{"name":"f","description":"` + strings.Repeat("does things ", 50) + `","parameters":{"type":"object","properties":{` +
		strings.TrimSuffix(strings.Repeat(`"p":{"type":"string","description":"a thing"},`, 10), ",") + `}}}}`
	for name, member := range map[string]string{"read": "tools", "skipped": "toolz"} {
		body := []byte(`{"model":"m","stream":true,"` + member + `":[` + strings.Repeat(tool+",", 39) + tool + `]}`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				_ = RequestOf("/v1/chat/completions", "", body)
			}
		})
	}
}
