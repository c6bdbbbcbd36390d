// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "github.com/tokenpulse/tokenpulse/internal/optional"

// Usage holds token counts.
type Usage struct {
	Input, Output, Reasoning, CacheRead, CacheWrite optional.Value[int64]
	// InputBy, OutputBy and CacheReadBy are the parts of Input, Output and CacheRead that the service
	// reports by modality.
	InputBy, OutputBy, CacheReadBy ByModality
	// toolInput and total serve to normalise; few providers report both.
	toolInput, total optional.Value[int64]
}

// Modality is a kind of content that tokens stand for.
type Modality uint8

// The modalities that OpenTelemetry has attributes for.
const (
	TextTokens Modality = iota
	ImageTokens
	AudioTokens
	Modalities // number of modalities
)

// ByModality holds token counts by modality. Services report 0 for modalities that they know, so 0
// is the same as not reported.
type ByModality [Modalities]int64

// modalityNames has the modalities as members of OpenAI's details are named, and as the JSON of Google's
// lists has them.
var modalityNames = map[string]Modality{
	"text_tokens": TextTokens, `"TEXT"`: TextTokens, `"text"`: TextTokens, "1": TextTokens,
	"image_tokens": ImageTokens, `"IMAGE"`: ImageTokens, `"image"`: ImageTokens, "2": ImageTokens,
	"audio_tokens": AudioTokens, `"AUDIO"`: AudioTokens, `"audio"`: AudioTokens, "4": AudioTokens,
}

// read adds the counts of an object with a member for each modality, or of a list.
func (b *ByModality) read(details value) {
	for name, m := range details.members {
		b.add(string(name), m)
	}
	for element := range details.elements {
		b.add(string(element.get("modality")), element.get("tokenCount"))
		b.add(string(element.get("modality")), element.get("tokens")) // of the Interactions API
	}
}

func (b *ByModality) add(name string, tokens value) {
	if m, known := modalityNames[name]; known {
		n, _ := tokens.count()
		b[m] += n
	}
}

// combine replaces each count by what choose makes of it and the other one.
func (b *ByModality) combine(other ByModality, choose func(mine, theirs tokens) tokens) {
	for m, n := range other {
		b[m] = choose(tokens{Value: b[m], Known: b[m] > 0}, tokens{Value: n, Known: n > 0}).Value
	}
}

// readUsage reads the token counts of an object, under the names of all providers.
func readUsage(v value) (u Usage) {
	for name, m := range v.members {
		switch string(name) {
		case "prompt_tokens", "input_tokens", "inputTokens", "promptTokenCount", "prompt_eval_count", "total_input_tokens",
			"prompt_token_count", "inputTextTokenCount", "inputTokenCount", "input_token_count":
			setCount(&u.Input, m)
		case "completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount", "responseTokenCount", "eval_count",
			"total_output_tokens", "generation_token_count", "totalOutputTextTokenCount", "tokenCount", "outputTokenCount",
			"generated_token_count", "generated_tokens":
			setCount(&u.Output, m)
		case "reasoning_tokens", "thoughtsTokenCount", "total_thought_tokens":
			setCount(&u.Reasoning, m)
		case "cache_read_input_tokens", "cacheReadInputTokens", "cacheReadInputTokenCount", "cachedContentTokenCount",
			"cached_tokens", "total_cached_tokens":
			setCount(&u.CacheRead, m)
		case "prompt_cache_hit_tokens": // beside cached_tokens, which has precedence
			if !u.CacheRead.Known {
				setCount(&u.CacheRead, m)
			}
		case "cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteInputTokenCount":
			setCount(&u.CacheWrite, m)
		case "prompt_tokens_details", "input_tokens_details":
			setCount(&u.CacheRead, m.get("cached_tokens"))
			setCount(&u.CacheWrite, m.get("cache_write_tokens"))
			u.InputBy.read(m)
		case "input_token_details": // of the Realtime API, which reports 0 without caching, too
			if n, ok := m.get("cached_tokens").count(); ok && n > 0 {
				u.CacheRead = optional.Of(n)
			}
			u.InputBy.read(m)
			u.CacheReadBy.read(m.get("cached_tokens_details"))
		case "completion_tokens_details", "output_tokens_details", "output_token_details":
			setCount(&u.Reasoning, m.get("reasoning_tokens"))
			setCount(&u.Reasoning, m.get("thinking_tokens"))
			u.OutputBy.read(m)
		case "promptTokensDetails", "toolUsePromptTokensDetails", "input_tokens_by_modality", "tool_use_tokens_by_modality":
			u.InputBy.read(m)
		case "candidatesTokensDetails", "responseTokensDetails", "output_tokens_by_modality":
			u.OutputBy.read(m)
		case "cacheTokensDetails", "cached_tokens_by_modality":
			u.CacheReadBy.read(m)
		case "toolUsePromptTokenCount", "total_tool_use_tokens":
			setCount(&u.toolInput, m)
		case "total_tokens", "totalTokenCount":
			setCount(&u.total, m)
		}
	}
	return u
}

func setCount(n *optional.Value[int64], v value) {
	if count, ok := v.count(); ok {
		*n = optional.Of(count)
	}
}

type tokens = optional.Value[int64]

// combine replaces each count by what choose makes of it and the other one.
func (u *Usage) combine(other Usage, choose func(mine, theirs tokens) tokens) {
	u.Input = choose(u.Input, other.Input)
	u.Output = choose(u.Output, other.Output)
	u.Reasoning = choose(u.Reasoning, other.Reasoning)
	u.CacheRead = choose(u.CacheRead, other.CacheRead)
	u.CacheWrite = choose(u.CacheWrite, other.CacheWrite)
	u.InputBy.combine(other.InputBy, choose)
	u.OutputBy.combine(other.OutputBy, choose)
	u.CacheReadBy.combine(other.CacheReadBy, choose)
	u.toolInput = choose(u.toolInput, other.toolInput)
	u.total = choose(u.total, other.total)
}

// merge takes over the counts that other knows.
func (u *Usage) merge(other Usage) {
	u.combine(other, func(mine, theirs tokens) tokens {
		if theirs.Known {
			return theirs
		}
		return mine
	})
}

// fill takes over the counts that only other knows.
func (u *Usage) fill(other Usage) {
	other.merge(*u)
	*u = other
}

// add adds the counts that other knows.
func (u *Usage) add(other Usage) {
	u.combine(other, func(mine, theirs tokens) tokens {
		return tokens{Value: mine.Value + theirs.Value, Known: mine.Known || theirs.Known}
	})
}

// Usage returns the token counts in OpenTelemetry's meaning: the input includes cached
// tokens, the output includes reasoning, cache and reasoning are subsets.
func (o *Observation) Usage() Usage {
	u := o.Reported
	if o.seed {
		u.Output = optional.Value[int64]{}
	}
	if o.TokenChunks > 0 && u.Input.Value == 0 && u.Output.Known && u.Output.Value == 0 {
		return Usage{} // zeros after real tokens: an interrupted answer
	}
	if normalise := formatNamed(o.Format).normalise; normalise != nil {
		normalise(o, &u)
	} else {
		likeOpenAI(&u)
	}
	if u.Output.Known {
		u.Reasoning.Value = min(u.Reasoning.Value, u.Output.Value)
	}
	return u
}

// likeOpenAI normalises counts that include cached and reasoning tokens. xAI's total shows that
// its output excludes reasoning. Grok on Azure has more cached than prompt tokens, so its prompt
// excludes them.
func likeOpenAI(u *Usage) {
	if u.total.Known && u.Input.Known && u.Reasoning.Value > 0 && u.total.Value == u.Input.Value+u.Output.Value+u.Reasoning.Value {
		addKnown(&u.Output, u.Reasoning)
	}
	if u.CacheRead.Value > u.Input.Value {
		addKnown(&u.Input, u.CacheRead)
	}
}

// addCached normalises an input without cached tokens.
func addCached(_ *Observation, u *Usage) { addKnown(&u.Input, u.CacheRead, u.CacheWrite) }

// addThoughts normalises an output without reasoning, and an input without the results of tools.
func addThoughts(o *Observation, u *Usage) {
	addKnown(&u.Input, u.toolInput)
	if u.Reasoning.Known && !u.Output.Known && o.ChunksOf(Content)+o.ChunksOf(ToolCall) == 0 {
		u.Output = optional.Of[int64](0) // all output was thoughts
	}
	addKnown(&u.Output, u.Reasoning)
}

// addKnown adds counts to one that is known.
func addKnown(sum *optional.Value[int64], parts ...optional.Value[int64]) {
	for _, part := range parts {
		if sum.Known {
			sum.Value += part.Value
		}
	}
}
