// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "github.com/tokenpulse/tokenpulse/internal/optional"

// Usage holds token counts.
type Usage struct {
	Input, Output, Reasoning, CacheRead, CacheCreation optional.Value[int64]
	// toolInput and total serve to normalise; few providers report both.
	toolInput, total optional.Value[int64]
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
			setCount(&u.CacheCreation, m)
		case "prompt_tokens_details", "input_tokens_details":
			setCount(&u.CacheRead, m.get("cached_tokens"))
			setCount(&u.CacheCreation, m.get("cache_write_tokens"))
		case "input_token_details": // of the Realtime API, which reports 0 without caching, too
			if n, ok := m.get("cached_tokens").count(); ok && n > 0 {
				u.CacheRead = optional.Of(n)
			}
		case "completion_tokens_details", "output_tokens_details":
			setCount(&u.Reasoning, m.get("reasoning_tokens"))
			setCount(&u.Reasoning, m.get("thinking_tokens"))
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
	u.CacheCreation = choose(u.CacheCreation, other.CacheCreation)
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
func addCached(_ *Observation, u *Usage) { addKnown(&u.Input, u.CacheRead, u.CacheCreation) }

// addThoughts normalises an output without reasoning, and an input without the results of tools.
func addThoughts(o *Observation, u *Usage) {
	addKnown(&u.Input, u.toolInput)
	if u.Reasoning.Known && !u.Output.Known && o.ByChannel[0]+o.ByChannel[2] == 0 {
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
