// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import "time"

// Kind is a kind of load.
type Kind int

// The kinds of load. Requests stand beside the others ("requests per second at the SLO"); utilization is of tokens.
const (
	Requests     Kind = iota
	OutputTokens      // of answers
	PromptTokens      // that were not cached
	Kinds
)

// String returns the value of the label kind.
func (k Kind) String() string {
	return [...]string{"requests", "output_tokens", "prompt_tokens"}[k]
}

// Load is a load of each kind, per second.
type Load [Kinds]float64

// Slot is what a replica was offered in a slot: the requests that began in it, with those that were refused or failed.
type Slot struct {
	// Good and Bad are the requests by the verdict of the SLO.
	Good, Bad uint64
	// Output and Prompt are the tokens of answers and of prompts that were not cached.
	Output, Prompt uint64
	// Unsized is how many of the requests are not in Output and Prompt, such as refused ones. They count as mean ones.
	Unsized uint64
}

// Settings of a Limit.
type Settings struct {
	Objective float64       // share of good requests, such as 0.99
	Slot      time.Duration // length of all slots, 5 to 60 s; default 15 s
	Forget    time.Duration // how long a limit stays after the last slot beyond it that missed the objective; default 7 days
}

// withDefaults replaces zero values.
func (s Settings) withDefaults() Settings {
	if s.Slot == 0 {
		s.Slot = 15 * time.Second
	}
	if s.Forget == 0 {
		s.Forget = 7 * 24 * time.Hour
	}
	return s
}
