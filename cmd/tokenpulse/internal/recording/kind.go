// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// Kind is a format of recordings.
type Kind uint8

// The formats.
const (
	TokenEvents Kind = iota + 1
	AIPerf
	VLLMBench
	SGLangBench
	GuideLLM
	InferencePerf
	kinds
)

// format is what there is to know of a kind, besides its reader.
type format struct {
	// name is how messages call a file of this kind, and tool what wrote it.
	name, tool string
	// client is the service.name of the tool, which is the client of the requests. It is empty if the
	// streams say who sent them.
	client string
	// fits reports whether a file is of this kind, by what is known of its beginning.
	fits func(beginning) bool
	// gaps are what the tool does not record.
	gaps []Gap
}

var formats = [kinds]format{
	TokenEvents: {
		name: "token events",
		fits: func(b beginning) bool { return b.first == '{' && b.has("event") },
	},
	AIPerf: {
		name: "AIPerf's profile_export.jsonl", tool: "AIPerf", client: "aiperf",
		fits: func(b beginning) bool {
			return b.first == '{' && b.has("metadata") && !b.has("metadata.guidellm_version")
		},
		gaps: aiperfGaps,
	},
	VLLMBench: {
		name: "a result of vllm bench serve --save-detailed", tool: "vllm bench serve", client: "vllm-bench",
		fits: func(b beginning) bool {
			return b.first == '{' && b.has("model_id") && (b.has("tokenizer_id") || b.has("num_prompts") || b.has("ttfts"))
		},
		gaps: vllmGaps,
	},
	SGLangBench: {
		name: "a result of SGLang's bench_serving --output-details", tool: "SGLang's bench_serving", client: "sglang-bench",
		fits: func(b beginning) bool { return b.first == '{' && b.has("backend") && b.has("dataset_name") },
		gaps: sglangGaps,
	},
	GuideLLM: {
		name: "a report of guidellm (JSON or YAML)", tool: "guidellm", client: "guidellm",
		fits: func(b beginning) bool {
			return b.first != '[' && (b.has("benchmarks") || b.has("metadata.guidellm_version") || b.first != '{' && b.has("metadata") && b.has("args"))
		},
		gaps: guidellmGaps,
	},
	InferencePerf: {
		name: "inference-perf's per_request_lifecycle_metrics.json", tool: "inference-perf", client: "inference-perf",
		fits: func(b beginning) bool { return b.first == '[' && b.has("start_time") && b.has("end_time") },
		gaps: inferencePerfGaps,
	},
}

// String returns how messages call a file of this kind.
func (k Kind) String() string { return formats[k].name }

// Client returns the service.name of the tool that recorded the requests as their client, or "" for token events, which
// say who sent them.
func (k Kind) Client() string { return formats[k].client }

// Gaps returns what files of this kind do not say, and what that means for the numbers.
func (k Kind) Gaps() []Gap { return formats[k].gaps }

// Notes returns the gaps as sentences.
func (k Kind) Notes() []string {
	notes := make([]string, 0, len(k.Gaps()))
	for _, gap := range k.Gaps() {
		notes = append(notes, formats[k].tool+" does not record "+gap.Missing+": "+gap.Effect)
	}
	return notes
}

// Gap is something that a tool does not record.
type Gap struct {
	// Missing is what the tool does not record.
	Missing string `json:"missing"`
	// Effect is what that means for the numbers.
	Effect string `json:"effect"`
}

// DetectBytes is the number of bytes at the beginning of a file that Detect wants.
const DetectBytes = 64 << 10

// Detect returns the kind of a recording. beginning holds the first DetectBytes of the file, decompressed, or all of a
// shorter one. ok is false for a file that is no recording, such as one of spans.
func Detect(prefix []byte) (k Kind, ok bool) {
	b := lookAt(prefix)
	for k := TokenEvents; k < kinds; k++ {
		if formats[k].fits(b) {
			return k, true
		}
	}
	return 0, false
}

// beginning is what the first bytes of a file show.
type beginning struct {
	// first is the first byte that is not a space.
	first byte
	// keys are those of the first JSON object, in a list or not, and those of the objects in it as "key.key".
	keys map[string]bool
}

func (b beginning) has(key string) bool { return b.keys[key] }

// topLevel matches the keys of a YAML file.
var topLevel = regexp.MustCompile(`(?m)^([a-z_]+):`)

func lookAt(prefix []byte) beginning {
	b := beginning{keys: map[string]bool{}}
	prefix = bytes.TrimLeft(bytes.TrimPrefix(prefix, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(prefix) == 0 {
		return b
	}
	b.first = prefix[0]
	if b.first != '{' && b.first != '[' {
		for _, key := range topLevel.FindAllSubmatch(prefix, -1) {
			b.keys[string(key[1])] = true
		}
		return b
	}
	decoder := json.NewDecoder(&pythonJSON{source: bytes.NewReader(bytes.TrimLeft(prefix, "[ \t\r\n"))})
	b.object(decoder, "")
	return b
}

// object adds the keys of the next value, if it is an object, and reports whether it was read to its end.
func (b beginning) object(decoder *json.Decoder, under string) bool {
	opening, err := decoder.Token()
	if opening != json.Delim('{') {
		return err == nil && skipRest(decoder, opening)
	}
	for decoder.More() {
		token, err := decoder.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return false
		}
		b.keys[under+key] = true
		if under != "" {
			var value json.RawMessage
			if decoder.Decode(&value) != nil {
				return false
			}
		} else if !b.object(decoder, key+".") {
			return false
		}
	}
	_, err = decoder.Token()
	return err == nil
}

// skipRest reads on to the end of a value of which the first token was read.
func skipRest(decoder *json.Decoder, opening json.Token) bool {
	if opening != json.Delim('[') {
		return true
	}
	for decoder.More() {
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return false
		}
	}
	_, err := decoder.Token()
	return err == nil
}

// Supported returns the names of all kinds, for messages.
func Supported() string {
	names := make([]string, 0, kinds)
	for k := TokenEvents; k < kinds; k++ {
		names = append(names, k.String())
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
